import { holds, present, same, show } from '../check.js'
import { clausesOn } from '../clause.js'
import { HOSTILE_TEXTS } from '../hostile.js'
import {
  applied,
  claim,
  commitOne,
  enqueue,
  finish,
  gated,
  ids,
  item,
  type LedgerBench,
  listen,
  nothingToClaim,
  openCount,
  take,
  tell,
} from './bench.js'

export const limitClauses = clausesOn<LedgerBench>()({
  'ledger: an item that is too large is refused alone': {
    law: 'A push over `limits.maxItemBytes` answers `refused` TOO_LARGE with the limit; its neighbours are applied.',
    look: 'whether size is checked for each settlement before anything is written, in bytes of UTF-8.',
    needs: ['size limit'],
    async run(bench) {
      const { ledger } = bench
      const limit = ledger.limits.maxItemBytes
      holds(Number.isFinite(limit) && limit >= 1024, `limits.maxItemBytes is a sensible limit (${limit})`)
      const large = enqueue(bench, item(bench, 'large', { groupId: 'g', input: JSON.stringify('x'.repeat(limit)) }))
      // Two bytes each in UTF-8: over the limit in bytes, under it in characters.
      const wide = enqueue(bench, item(bench, 'wide', { input: JSON.stringify('é'.repeat(Math.ceil(limit * 0.6))) }))
      const results = await ledger.commit([
        enqueue(bench, item(bench, 'a')),
        large,
        enqueue(bench, item(bench, 'b')),
        wide,
      ])
      same(
        results.map((result) => (result.kind === 'refused' ? [result.code, result.limit] : result.kind)),
        ['applied', ['TOO_LARGE', limit], 'applied', ['TOO_LARGE', limit]],
        'the results',
      )
      const message = results[1]?.kind === 'refused' ? results[1].message : ''
      holds(message.includes(String(limit)), `the message names the limit (${show(message)})`)
      same(
        [await openCount(bench, 'g'), (await ledger.read(['large']))[0]],
        [undefined, undefined],
        'what is left of it',
      )
      await take(bench, ['a', 'b'])
    },
  },
  'ledger: a settlement that is refused leaves its lease as it was': {
    law: 'When one effect of a settlement is refused, none of them happen, and the lease can still settle.',
    look: 'whether the refusal comes before the first write.',
    needs: ['size limit'],
    async run(bench) {
      const { ledger } = bench
      await applied(ledger, [enqueue(bench, item(bench, 'a', { groupId: 'g' }))], 'the enqueue')
      const [a] = await take(bench, ['a'])
      const input = JSON.stringify('x'.repeat(ledger.limits.maxItemBytes))
      const children = [item(bench, 'small', { groupId: 'g' }), item(bench, 'large', { groupId: 'g', input })]
      const plan = children.flatMap((child) => enqueue(bench, child).effects)
      same((await commitOne(ledger, finish(a, '1', plan))).kind, 'refused', 'an end with a child that is too large')
      same((await ledger.read(['small']))[0], undefined, 'its other child')
      same(await openCount(bench, 'g'), 1, 'the open count')
      await nothingToClaim(bench, 'while the lease is held')
      await applied(ledger, [finish(a, '1')], 'the end without children')
    },
  },
  'ledger: hostile ids and names are safe or refused': {
    law: 'Ids, types, groups, tags, gates, inboxes and schedules may be any text: kept exactly, or refused as BAD_NAME.',
    look: 'how names become part of statements, scripts, keys and channels.',
    async run(bench) {
      const { ledger } = bench
      for (const [i, text] of HOSTILE_TEXTS.entries()) {
        const what = `an item whose names are ${JSON.stringify(text)}`
        const { heard, leave } = listen(ledger, text)
        const envelope = item(bench, text, { type: text, groupId: text, tags: [text], group: text, waiter: text })
        const results = await ledger.commit([enqueue(bench, envelope), enqueue(bench, item(bench, `plain ${i}`))])
        if (results[0]?.kind === 'refused') {
          same(results[0].code, 'BAD_NAME', `the refusal of ${what}`)
          await take(bench, [`plain ${i}`])
          leave()
          continue
        }
        same(results[0]?.kind, 'applied', what)
        const [found] = await take(bench, [text, `plain ${i}`])
        same({ ...found.envelope }, { ...envelope }, `the envelope of ${what}`)
        await applied(ledger, [gated(bench, `after ${text}`, [text])], `a gate on ${what}`)
        const closed = await applied(ledger, [finish(found, '1', [tell(`after ${text}`, text)])], `the end of ${what}`)
        same(closed, [{ groupId: text }], `the groups closed by ${what}`)
        await bench.time.eventually(() => heard.ids.includes(text))
        holds(heard.ids.includes(text), `the inbox heard of ${what} (${show(heard)})`)
        await take(bench, [`after ${text}`])
        leave()
      }
      const all = await ledger.read(HOSTILE_TEXTS)
      const kept = all.flatMap((found, i) => (found === undefined ? [] : [[HOSTILE_TEXTS[i], found.envelope.id]]))
      for (const [asked, id] of kept) same(id, asked, 'the id of an item read back')
    },
  },
  'ledger: a body with too many tags keeps the first of them': {
    law: 'Of the tags of a body that came through the plain queue an item keeps the first 32, and is listed by those alone.',
    look: 'whether the body is cut to that before its tags are written into an index.',
    needs: ['inspect', 'foreign bodies'],
    async run(bench) {
      const tags = Array.from({ length: 5_000 }, (_, i) => `tag ${i}`)
      await bench.pushRaw(JSON.stringify(item(bench, 'hand', { tags })))
      const [hand] = await take(bench, ['hand'])
      same(hand.envelope.tags, tags.slice(0, 32), 'the tags of the item')
      const inspect = present(bench.ledger.inspect, '`inspect` of the ledger')
      const listed = async (tag: string) => (await inspect.list({ state: 'active', tag, limit: 5 })).items.length
      same(
        [await listed('tag 31'), await listed('tag 32')],
        [1, 0],
        'how many are listed by the last tag, and by the next',
      )
    },
  },
  'ledger: names that look like parts of others are kept apart': {
    law: 'No id, group or gate can be mistaken for a record about another one, whatever its name ends in.',
    look: 'how keys are put together: a separator that may occur in a name joins nothing safely.',
    async run(bench) {
      const { ledger } = bench
      const tails = [
        '',
        ':0',
        ':1',
        ':0:g',
        ':open',
        ':done',
        ':final',
        ':result',
        ':error',
        ':ended',
        ':freed',
        ':told:a',
      ]
      const all = tails.map((tail) => ({ id: `a${tail}`, groupId: `g${tail}`, gate: `k${tail}` }))
      const batch = all.flatMap(({ id, groupId, gate }) => [
        enqueue(bench, item(bench, id, { groupId })),
        enqueue(bench, item(bench, `held by ${gate}`), { delayMs: Infinity, hold: { by: 'gate', key: gate } }, [
          { do: 'openGate', key: gate, holds: `held by ${gate}`, members: [id], need: 1, of: 'success' },
        ]),
      ])
      await applied(ledger, batch, 'the enqueues')
      const taken = await take(
        bench,
        all.map(({ id }) => id),
      )
      for (const [i, { id, groupId, gate }] of all.entries()) {
        const claimed = taken[i]!
        const child = item(bench, `child of ${id}`, { groupId })
        const value = { do: 'contribute', groupId, value: `"${id}"`, final: true } as const
        const plan = [
          value,
          ...enqueue(bench, child).effects,
          { do: 'tellGate', key: gate, member: id, ok: true } as const,
        ]
        same(await applied(ledger, [finish(claimed, id, plan)], `the end of ${id}`), [], `groups closed by ${id}`)
        const [next, held] = await take(bench, [`child of ${id}`, `held by ${gate}`])
        same(held.gate, { met: true }, `what the gate ${gate} decided`)
        const closed = await applied(ledger, [finish(next)], `the end of the child of ${id}`)
        same(closed, [{ groupId, value: `"${id}"` }], `groups closed by the child of ${id}`)
        same((await ledger.read([id]))[0]?.result, id, `the result of ${id}`)
      }
    },
  },
  'ledger: values may be any text': {
    law: 'Results, group values, errors and progress are opaque text, empty ones included.',
    look: 'how values are quoted, and whether an empty one is taken for none.',
    async run(bench) {
      const { ledger } = bench
      const texts = [...HOSTILE_TEXTS, '']
      const batch = texts.map((_, i) => enqueue(bench, item(bench, `i${i}`)))
      await applied(ledger, batch, 'the enqueues')
      const { items } = await claim(bench, { max: texts.length })
      const ends = items.map((claimed) => {
        const text = texts[Number(claimed.lease.id.slice(1))]!
        const groupId = claimed.envelope.groupId
        return finish(claimed, text, [{ do: 'contribute', groupId, value: text, final: false }])
      })
      await applied(ledger, ends, 'the ends')
      const names = texts.map((_, i) => `i${i}`)
      same(ids(items).toSorted(), names.toSorted(), 'the items claimed')
      same(
        (await ledger.read(names)).map((found) => found?.result),
        texts,
        'the results',
      )
      same(
        (await ledger.groups(names.map((id) => `g-${id}`))).map((group) => group?.value),
        texts,
        'the group values',
      )
    },
  },
})
