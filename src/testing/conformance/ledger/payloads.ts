import type { ItemSummary } from '../../../ports/inspect.js'
import { holds, present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { complete, deadLetter, type LedgerBench, setGroupValue, worker } from './bench.js'
import { died } from './inspect-bench.js'

const INPUT = JSON.stringify('the input')
const RESULT = JSON.stringify('the result')
const PROGRESS = JSON.stringify('the progress')
/** Longer than a line of a list, of characters that take three bytes each, and with more lines behind it. */
const ERROR = `Error: ${'€'.repeat(900)}\n    at the second line`

/** Of a list or a summary: what must not be in it, whatever it is called, and at most a line of the error. */
function isWithoutPayloads(seen: ItemSummary, where: string): void {
  const { id } = seen.envelope
  for (const name of ['input', 'result', 'progress'])
    holds(!(name in seen) && !(name in seen.envelope), `${where}: ${id} has no ${name}`)
  const text = JSON.stringify(seen)
  for (const payload of [INPUT, RESULT, PROGRESS])
    holds(!text.includes(payload.slice(1, -1)), `${where}: nothing of ${id} says ${payload}`)
}

/** A done item, a dead one and a running one, with everything that items can carry. */
async function loaded(bench: LedgerBench): Promise<void> {
  const { ledger, time } = bench
  const names = ['done', 'dead', 'active'] as const
  const taken = await bench.enqueueAndTake(names, { input: INPUT, tags: ['x'] }, { leaseTicks: 10_000 })
  await ledger.extend(
    taken.map(({ lease }) => ({ lease, running: true, progress: PROGRESS })),
    time.ms(10_000),
    worker(),
  )
  const [done, dead] = taken
  const value = setGroupValue('g-done', RESULT)
  await bench.apply('two ends', [complete(done, RESULT, [value]), deadLetter(dead, ERROR)])
}

export const payloadClauses = clausesOn<LedgerBench>()({
  'ledger: lists carry no payloads': {
    law: 'list() and summaries() have neither input, result nor progress, and of an error its first line, at most 500 characters.',
    hint: 'what the list selects: result and progress belong only to read(), and listedError() cuts an error.',
    needs: ['inspect'],
    async run(bench) {
      await loaded(bench)
      const inspect = bench.inspect
      const queries = [{}, { tag: 'x' }, { state: 'completed' }, { state: 'dead' }, { state: 'active' }] as const
      for (const query of queries) {
        const { items } = await inspect.list({ ...query, limit: 10 })
        same(items.length, Object.keys(query).includes('state') ? 1 : 3, `the number of ${JSON.stringify(query)}`)
        for (const seen of items) isWithoutPayloads(seen, `list(${JSON.stringify(query)})`)
      }
      const asked = ['done', 'dead', 'active', 'no such item']
      const [done, dead, active, none] = await inspect.summaries(asked)
      same([done?.status, dead?.status, active?.status, none], ['completed', 'dead', 'running', undefined], 'summaries')
      for (const seen of [done, dead, active]) isWithoutPayloads(present(seen, 'a summary'), 'summaries()')
      const { items } = await inspect.list({ state: 'dead', limit: 1 })
      for (const error of [dead?.error, items[0]?.error]) same(error, `${ERROR.slice(0, 500)}…`, 'the error in a list')
    },
  },
  'ledger: one item has its payloads, whole': {
    law: 'read() has the result, the progress and the whole error of an item.',
    hint: 'whether what lists leave out or cut is left out or cut here, too.',
    needs: ['inspect'],
    async run(bench) {
      await loaded(bench)
      same((await bench.view('done')).result, RESULT, 'the result')
      same((await bench.view('active')).progress, PROGRESS, 'the progress')
      same((await bench.view('dead')).error, ERROR, 'the error')
    },
  },
  'ledger: failures show a line of an error': {
    law: 'The sample of failures() has the first line of its error, at most 500 characters.',
    hint: 'whether listedError() cuts it.',
    needs: ['inspect'],
    async run(bench) {
      const [a] = await bench.enqueueAndTake(['a'])
      await bench.apply('its end', [died(bench, a, { fingerprint: 'f', error: ERROR })])
      const [group] = await bench.inspect.failures(1)
      same(group?.sample, { id: 'a', error: `${ERROR.slice(0, 500)}…` }, 'the sample')
    },
  },
  'ledger: counts the open items of groups apart from their values': {
    law: 'openCounts(ids) is the open count of each group, as groups(ids) has it, and nothing else.',
    hint: 'whether both read the same count; the value is not needed for it.',
    needs: ['inspect'],
    async run(bench) {
      await loaded(bench)
      await bench.enqueueItems(['m1', 'm2'], { groupId: 'many' })
      const asked = ['g-done', 'g-active', 'many', 'no such group']
      same(await bench.inspect.openCounts(asked), [0, 1, 2, undefined], 'the open counts')
      const groups = await bench.ledger.groups(asked)
      same(
        groups.map((group) => [group?.open, group?.value]),
        [
          [0, RESULT],
          [1, undefined],
          [2, undefined],
          [undefined, undefined],
        ],
        'the groups',
      )
    },
  },
})
