import { describe, expect, it } from 'vitest'
import type { ActionReport } from '../../../src/ops/api.js'
import { BY, scene } from './scene.js'

/** Lets time pass until the action has come to an end. */
async function until(clock: ReturnType<typeof scene>['clock'], action: Promise<ActionReport>): Promise<ActionReport> {
  let report: ActionReport | undefined
  void action.then((told) => {
    report = told
  })
  for (let n = 0; n < 100 && report === undefined; n += 1) await clock.advance(1_000)
  return action
}

describe('a redrive that sends some ahead', () => {
  it('sends one, then ten, then the rest when they do well', async () => {
    const { actions, bank, charged, clock, statuses } = scene()
    const ids = await charged(30)
    bank.failure = undefined
    bank.runs.length = 0
    const seen: number[] = []
    const action = actions.redrive(
      { type: 'charge' },
      { ...BY, canary: true, onProgress: ({ done }) => seen.push(done) },
    )
    expect(await until(clock, action)).toMatchObject({ total: 30, done: 30, passed: 0, state: 'done' })
    expect(seen).toEqual([1, 11, 30])
    await clock.advance(1_000)
    expect(await statuses(ids)).toEqual(ids.map(() => 'completed'))
    expect(bank.runs.length).toBe(30)
  })

  it('stops after the first that fails the same way, and leaves the rest untouched', async () => {
    const { actions, bank, charged, clock, context } = scene()
    const ids = await charged(30)
    bank.runs.length = 0
    const report = await until(clock, actions.redrive({ type: 'charge' }, { ...BY, canary: true }))
    const print = (await context.ledger.inspect!.attempts(ids[0]!)).at(-1)!.fingerprint!
    expect(report).toMatchObject({ total: 30, done: 1, state: 'stopped' })
    expect(report.because).toContain(`the same fingerprint ${print}`)
    expect(bank.runs.length).toBe(1)
    expect((await actions.log())[0]?.what).toContain('stopped after 1 of 30')
    expect(await actions.actions()).toMatchObject([{ state: 'stopped', because: report.because }])

    // The bank is back: the continued action starts with one item again.
    bank.failure = undefined
    const seen: number[] = []
    const action = actions.continue(report.id, { who: 'bob', onProgress: ({ done }) => seen.push(done) })
    expect(await until(clock, action)).toMatchObject({ total: 30, done: 30, passed: 0, state: 'done' })
    expect(seen).toEqual([2, 12, 30])
    expect((await actions.log()).find(({ who }) => who === 'bob')?.what).toContain('goes on after 1 of 30')
  })

  it('stops when one goes to retry with it', async () => {
    const { actions, bank, charged, clock, item } = scene({ attempts: 3 })
    bank.failure = undefined
    const ids = await charged(0)
    expect(ids).toEqual([])
    bank.failure = new Error('the bank is down')
    const dead = await charged(3)
    await clock.advance(60_000)
    expect((await item(dead[0]!))?.status).toBe('dead')
    const report = await until(clock, actions.redrive({}, { ...BY, canary: true }))
    expect(report).toMatchObject({ done: 1, state: 'stopped' })
    const sent = await Promise.all(dead.map(item))
    expect(sent.filter((view) => view?.status === 'pending').length).toBe(1)
  })

  it('stops when one dies of another cause', async () => {
    const { actions, bank, charged, clock } = scene()
    await charged(3)
    bank.failure = new TypeError('no such account')
    const report = await until(clock, actions.redrive({}, { ...BY, canary: true }))
    expect(report).toMatchObject({ done: 1, state: 'stopped' })
    expect(report.because).toContain('of another cause')
  })

  it('stops when no worker runs the items sent ahead, and watches them again when it is continued', async () => {
    const { actions, bank, charged, clock } = scene()
    await charged(3)
    bank.failure = undefined
    await actions.pause({ type: 'charge' }, BY)
    const report = await until(clock, actions.redrive({}, { ...BY, canary: true, canaryWaitMs: 5_000 }))
    expect(report).toMatchObject({ done: 1, state: 'stopped' })
    expect(report.because).toContain('1 of the 1 sent ahead had not ended after 5 s')
    await actions.resume({ type: 'charge' }, BY)
    expect(await until(clock, actions.continue(report.id))).toMatchObject({ done: 3, state: 'done' })
    expect(bank.runs.length).toBe(6)
  })

  it('stops while it waits when it is aborted', async () => {
    const { actions, charged, clock } = scene()
    await charged(3)
    await actions.pause({ type: 'charge' }, BY)
    const stop = new AbortController()
    const action = actions.redrive({}, { ...BY, canary: true, signal: stop.signal })
    await clock.advance(3_000)
    stop.abort()
    expect(await action).toMatchObject({ done: 1, state: 'stopped', because: expect.stringContaining('asked to stop') })
  })
})
