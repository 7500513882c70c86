import { holds, same, show } from '../check.js'
import { clausesOn } from '../clause.js'
import { HOSTILE_TEXTS } from '../hostile-texts.js'
import { commitOne, complete, ids, type LedgerBench, listen, notifyGate, setGroupValue } from './bench.js'

export const limitClauses = clausesOn<LedgerBench>()({
  'ledger: an item that is too large is refused and its neighbours are applied': {
    law: 'An enqueue over `limits.maxItemBytes` answers `refused` TOO_LARGE with the limit; its neighbours are applied.',
    hint: 'whether size is checked for each settlement before anything is written, in bytes of UTF-8.',
    needs: ['size limit'],
    async run(bench) {
      const { ledger } = bench
      const limit = ledger.limits.maxItemBytes
      holds(Number.isFinite(limit) && limit >= 1024, `limits.maxItemBytes is a sensible limit (${limit})`)
      const large = bench.enqueue('large', { groupId: 'g', input: JSON.stringify('x'.repeat(limit)) })
      // Two bytes each in UTF-8: over the limit in bytes, under it in characters.
      const wide = bench.enqueue('wide', { input: JSON.stringify('é'.repeat(Math.ceil(limit * 0.6))) })
      const results = await ledger.commit([bench.enqueue('a'), large, bench.enqueue('b'), wide])
      same(
        results.map((result) => (result.kind === 'refused' ? [result.code, result.limit] : result.kind)),
        ['applied', ['TOO_LARGE', limit], 'applied', ['TOO_LARGE', limit]],
        'the results',
      )
      const message = results[1]?.kind === 'refused' ? results[1].message : ''
      holds(message.includes(String(limit)), `the message names the limit (${show(message)})`)
      same(
        [await bench.openCount('g'), (await ledger.read(['large']))[0]],
        [undefined, undefined],
        'what is left of it',
      )
      await bench.take(['a', 'b'])
    },
  },
  'ledger: a settlement that is refused leaves its lease as it was': {
    law: 'When one effect of a settlement is refused, none of them happen, and the lease can still settle.',
    hint: 'whether the refusal comes before the first write.',
    needs: ['size limit'],
    async run(bench) {
      const { ledger } = bench
      const [a] = await bench.enqueueAndTake(['a'], { groupId: 'g' })
      const input = JSON.stringify('x'.repeat(ledger.limits.maxItemBytes))
      const children = [bench.item('small', { groupId: 'g' }), bench.item('large', { groupId: 'g', input })]
      const plan = children.flatMap((child) => bench.enqueue(child).effects)
      same((await commitOne(ledger, complete(a, '1', plan))).kind, 'refused', 'an end with a child that is too large')
      same((await ledger.read(['small']))[0], undefined, 'its other child')
      same(await bench.openCount('g'), 1, 'the open count')
      await bench.nothingToClaim('while the lease is held')
      await bench.apply('the end without children', [complete(a, '1')])
    },
  },
  'ledger: hostile ids and names are safe or refused': {
    law: 'Ids, types, groups, tags, gates, inboxes and schedules may be any text: kept exactly, or refused as BAD_NAME.',
    hint: 'how names become part of statements, scripts, keys and channels.',
    async run(bench) {
      const { ledger } = bench
      for (const [i, text] of HOSTILE_TEXTS.entries()) {
        const what = `an item whose names are ${JSON.stringify(text)}`
        const { heard, leave } = listen(ledger, text)
        const envelope = bench.item(text, { type: text, groupId: text, tags: [text], group: text, waiter: text })
        const results = await ledger.commit([bench.enqueue(envelope), bench.enqueue(`plain ${i}`)])
        if (results[0]?.kind === 'refused') {
          same(results[0].code, 'BAD_NAME', `the refusal of ${what}`)
          await bench.take([`plain ${i}`])
          leave()
          continue
        }
        same(results[0]?.kind, 'applied', what)
        const [found] = await bench.take([text, `plain ${i}`])
        same({ ...found.envelope }, { ...envelope }, `the envelope of ${what}`)
        await bench.apply(`a gate on ${what}`, [bench.gated(`after ${text}`, [text])])
        const closed = await bench.apply(`the end of ${what}`, [
          complete(found, '1', [notifyGate(`after ${text}`, text)]),
        ])
        same(closed, [{ groupId: text }], `the groups closed by ${what}`)
        await bench.time.eventually(() => heard.ids.includes(text))
        holds(heard.ids.includes(text), `the inbox was notified of ${what} (${show(heard)})`)
        await bench.take([`after ${text}`])
        leave()
      }
      const all = await ledger.read(HOSTILE_TEXTS)
      const kept = all.flatMap((found, i) => (found === undefined ? [] : [[HOSTILE_TEXTS[i], found.envelope.id]]))
      for (const [asked, id] of kept) same(id, asked, 'the id of an item read back')
    },
  },
  'ledger: a body with too many tags keeps the first of them': {
    law: 'Of the tags of a body that came through the plain queue an item keeps the first 32, and is listed only by those.',
    hint: 'whether the body is cut to that before its tags are written into an index.',
    needs: ['inspect', 'foreign bodies'],
    async run(bench) {
      const tags = Array.from({ length: 5_000 }, (_, i) => `tag ${i}`)
      await bench.pushRaw(JSON.stringify(bench.item('hand', { tags })))
      const [hand] = await bench.take(['hand'])
      same(hand.envelope.tags, tags.slice(0, 32), 'the tags of the item')
      const inspect = bench.inspect
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
    hint: 'how keys are put together: a separator that may occur in a name joins nothing safely.',
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
        bench.enqueue(id, { groupId }),
        bench.enqueue(`held by ${gate}`, {}, { delayMs: Infinity, hold: { by: 'gate', key: gate } }, [
          { do: 'openGate', key: gate, heldId: `held by ${gate}`, members: [id], need: 1, of: 'success' },
        ]),
      ])
      await bench.apply('the enqueues', batch)
      const taken = await bench.take(all.map(({ id }) => id))
      for (const [i, { id, groupId, gate }] of all.entries()) {
        const claimed = taken[i]!
        const child = bench.item(`child of ${id}`, { groupId })
        const value = setGroupValue(groupId, `"${id}"`, true)
        const plan = [
          value,
          ...bench.enqueue(child).effects,
          { do: 'notifyGate', key: gate, member: id, completed: true } as const,
        ]
        same(await bench.apply(`the end of ${id}`, [complete(claimed, id, plan)]), [], `groups closed by ${id}`)
        const [next, held] = await bench.take([`child of ${id}`, `held by ${gate}`])
        same(held.gate, { met: true }, `what the gate ${gate} decided`)
        const closed = await bench.apply(`the end of the child of ${id}`, [complete(next)])
        same(closed, [{ groupId, value: `"${id}"` }], `groups closed by the child of ${id}`)
        same((await ledger.read([id]))[0]?.result, id, `the result of ${id}`)
      }
    },
  },
  'ledger: values may be any text': {
    law: 'Results, group values, errors and progress are opaque text, empty ones included.',
    hint: 'how values are quoted, and whether an empty one is taken for none.',
    async run(bench) {
      const { ledger } = bench
      const texts = [...HOSTILE_TEXTS, '']
      const batch = texts.map((_, i) => bench.enqueue(`i${i}`))
      await bench.apply('the enqueues', batch)
      const { items } = await bench.claim({ max: texts.length })
      const ends = items.map((claimed) => {
        const text = texts[Number(claimed.lease.id.slice(1))]!
        const groupId = claimed.envelope.groupId
        return complete(claimed, text, [setGroupValue(groupId, text)])
      })
      await bench.apply('the ends', ends)
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
