import { FakeClock } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { plain } from '../../src/cli/terminal/paint.js'
import { Progress } from '../../src/cli/terminal/progress.js'
import { widthOf } from '../../src/cli/terminal/width.js'
import { renderOverview } from '../../src/cli/views/overview-table.js'
import { renderReasons } from '../../src/cli/views/reasons.js'
import { agoText, instantAndAgo } from '../../src/cli/views/times.js'
import { renderRig, renderWrit } from '../../src/cli/views/writ.js'
import type { OverviewRow, RigReport, WritReport } from '../../src/ops/api.js'
import { MemorySink } from './support.js'

const ZERO = { waiting: 0, scheduled: 0, retrying: 0, blocked: 0, active: 0, completed: 0, dead: 0, cancelled: 0 }
const view = { columns: 80, paint: plain }

describe('an overview on a screen that does not scroll', () => {
  const rows = Array.from(
    { length: 50 },
    (_, n): OverviewRow => ({
      queue: 'default',
      type: `type-${n}`,
      counts: { ...ZERO, waiting: n === 0 ? 3 : 0 },
      completedPerMinute: 0,
      failedPerMinute: 0,
      workers: n === 0 ? 0 : 1,
    }),
  )
  const overview = { at: 0, rows, workers: [], paused: { queues: ['bulk\u001b[2J'], types: [] } }

  it('says how many rows did not fit, and keeps what matters below them', () => {
    const lines = renderOverview(overview, { ...view, name: 'x', rows: 15 })
    expect(lines.length).toBeLessThanOrEqual(15)
    expect(lines.join('\n')).toMatch(/… and 4\d more rows/)
    expect(lines.at(-1)).toBe('paused: queue bulk␛[2J')
  })

  it('leaves out first what has nothing to tell', () => {
    const dead = { ...rows[40]!, counts: { ...ZERO, dead: 1 } }
    const lines = renderOverview({ ...overview, rows: rows.with(40, dead) }, { ...view, name: 'x', rows: 12 })
    expect(lines.join('\n')).toMatch(/type-0 [\s\S]*type-40 /)
  })

  it('leaves out columns that count nothing before those that do', () => {
    const held = { ...rows[0]!, type: 'a type with a rather long name', counts: { ...ZERO, scheduled: 2, blocked: 1 } }
    const [head] = renderOverview({ ...overview, rows: [held] }, { ...view, columns: 60, name: 'x' }).slice(2)
    expect(head).toMatch(/scheduled +blocked/)
    expect(head).not.toContain('active')
  })

  it('marks work that no worker handles', () => {
    expect(renderOverview(overview, { ...view, name: 'x' })[3]).toMatch(/type-0 .*none$/)
  })
})

describe('reasons', () => {
  it('are numbered where there are several, each with its remedy, and wrapped', () => {
    const reason = { text: 'It waits for something that takes rather long to say in one line.', remedy: 'Wait.' }
    expect(renderReasons([reason, { text: 'b', remedy: 'c' }], 40, plain)).toEqual([
      '1. It waits for something that takes',
      '   rather long to say in one line.',
      '   → Wait.',
      '2. b',
      '   → c',
    ])
  })
})

describe('a writ and its rigs', () => {
  const rig: RigReport = {
    id: 'rig-1',
    writId: 'w-1',
    status: 'failed',
    attempt: 1,
    createdAt: '2026-01-01T00:00:00.000Z',
    engines: [
      { id: 'plan', designId: 'planner', status: 'completed', upstream: [], carriedFrom: 'rig-0' },
      { id: 'bake', designId: 'baker', status: 'failed', upstream: ['plan'], error: 'the oven is cold \u001b[31m' },
    ],
  }
  const writ: WritReport = {
    id: 'w-1',
    type: 'mandate',
    title: 'Bread',
    phase: 'stuck',
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    body: Array.from({ length: 30 }, (_, n) => `line ${n}`).join('\n'),
    links: [{ from: 'w-1', to: 'w-2', label: 'after' }],
    children: [],
    rigs: [rig],
    cap: 2,
    reasons: [{ code: 'stuck', text: 'Its rig failed.', remedy: 'Heat the oven.' } as never],
    log: [],
    retry: { decision: 'requeue', why: 'it may pass' },
  }

  it('are shown with why they do not go on', () => {
    const text = renderWrit(writ, view).join('\n')
    expect(text).toContain('1 of at most 2')
    expect(text).toContain('requeue: it may pass')
    expect(text).toContain('Its rig failed.\n→ Heat the oven.')
    expect(text).toMatch(/bake +baker +failed +plan +the oven is cold ␛\[31m/)
    expect(text).toMatch(/plan +planner +completed +carried over from rig-0/)
    expect(text).toContain('… 30 lines in total; --json has them')
    expect(text).not.toContain('\u001b')
  })

  it('fit', () => {
    for (const columns of [25, 40, 80])
      for (const line of [...renderWrit(writ, { ...view, columns }), ...renderRig(rig, { ...view, columns })])
        expect(widthOf(line)).toBeLessThanOrEqual(columns)
  })
})

describe('progress where there is no terminal', () => {
  it('is a line now and then, and nothing for what is quickly over', async () => {
    const clock = new FakeClock()
    const sink = new MemorySink()
    const progress = new Progress(sink, clock, 'redrive', plain)
    progress.show(500, 12_345)
    await clock.advance(1_000)
    progress.show(1_000, 12_345)
    expect(sink.text).toBe('')
    await clock.advance(5_000)
    progress.show(6_000, 12_345)
    await clock.advance(6_000)
    progress.count(7_000)
    progress.end()
    expect(sink.text).toBe('redrive: 6,000 of 12,345\nredrive: 7,000 so far\n')
  })
})

describe('how long ago', () => {
  it('is one unit in a table, and exact beside the instant', () => {
    const now = Date.UTC(2026, 0, 1, 12)
    expect(agoText(now - 2_327_000, now)).toBe('38 m ago')
    expect(agoText(now + 90_000, now)).toBe('in 1 m')
    expect(agoText(Infinity, now)).toBe('never')
    expect(instantAndAgo(now - 2_327_000, now)).toBe('2026-01-01 11:21:13Z (38 m 47 s ago)')
  })
})
