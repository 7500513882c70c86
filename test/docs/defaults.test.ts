import { describe, expect, it } from 'vitest'
import { exponential } from '../../src/core/retry/backoff.js'
import { preview } from '../../src/core/retry/preview.js'
import { DEFAULT_RETRY_OPTIONS } from '../../src/core/retry/retry-policy.js'
import { MAX_RETRY_ATTEMPTS } from '../../src/guild/clockworks-retry/cap.js'
import { resolveEngineRetry } from '../../src/guild/fabricator/engine-retry.js'
import { resolveSpiderConfig } from '../../src/guild/spider/config.js'
import { resolveHopperOptions } from '../../src/source/hopper/resolve-hopper-options.js'
import { resolveSystemOptions } from '../../src/work/options.js'
import { read } from './pages.js'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 }

/** `10 000` is a number, `30 s` a time in ms. Only the beginning of a cell counts: `1: no retry` is 1. */
function amountIn(cell: string): number {
  const [, number = '', unit] = /^(?:× )?([\d ]*\d)(?: (ms|s|min|h|d)\b)?/.exec(cell) ?? []
  return Number(number.replaceAll(' ', '')) * (unit === undefined ? 1 : UNITS[unit]!)
}

const rows = (page: string) =>
  [...read(page).matchAll(/^\| (.+) \|$/gm)].map(([, cells = '']) => cells.split(' | ').map((cell) => cell.trim()))

const row = (page: string, first: string): readonly string[] => {
  const found = rows(page).find(([cell]) => cell === first)
  if (found === undefined) throw new Error(`${page} has no row "${first}"`)
  return found
}

describe('the table of retry defaults', () => {
  const policy = (first: string) => {
    const [, tries = '', wait = '', factor = '', longest = '', chance = ''] = row(
      'docs/reference/retry-defaults.md',
      first,
    )
    return {
      tries: amountIn(tries),
      wait: amountIn(wait),
      factor: amountIn(factor),
      longest: amountIn(longest),
      chance,
    }
  }

  it('has those of a work item and of retry(fn)', () => {
    const { attempts, base, factor, max, jitter } = DEFAULT_RETRY_OPTIONS
    for (const first of ['a work item', 'a call in `retry(fn)`']) {
      expect(policy(first)).toEqual({
        tries: attempts,
        wait: base,
        factor,
        longest: max,
        chance: expect.stringMatching(`^${jitter}:`),
      })
    }
  })

  it('has those of a stream', () => {
    const shown = policy('a message of a stream, with the `retry()` middleware')
    const { range } = exponential()

    expect(preview({ maxAttempts: shown.tries }).length).toBe(preview({ backoff: {} }).length)
    expect([shown.wait, shown.wait * shown.factor, shown.longest]).toEqual([
      range(1).maxMs,
      range(2).maxMs,
      range(100).maxMs,
    ])
    expect([shown.chance.split(':')[0], range(1).minMs]).toEqual(['full', 0])
  })

  it('has those of the guild', () => {
    const engine = resolveEngineRetry(undefined)
    expect(policy('an engine inside of its rig')).toMatchObject({
      tries: 1 + engine.maxAttempts,
      wait: engine.backoff.initialMs,
      factor: engine.backoff.factor,
      longest: engine.backoff.maxMs,
    })
    expect(policy('a writ, by another rig (`clockworks-retry`)').tries).toBe(MAX_RETRY_ATTEMPTS)
  })

  it('has those of the Hopper', () => {
    const { loop } = resolveHopperOptions({ random: () => 1 - Number.EPSILON })
    const fetch = policy('fetching from a stream (`fetchRetry`)')
    const settle = policy('settling a message of a stream (`settle`)')

    expect([fetch.tries, fetch.wait, fetch.longest]).toEqual([
      loop.fetchRetry.attempts,
      Math.round(loop.fetchRetry.delayMs(1)),
      Math.round(loop.fetchRetry.delayMs(50)),
    ])
    expect([settle.tries, settle.wait, settle.longest]).toEqual([
      loop.settle.attempts,
      loop.settle.baseMs,
      loop.settle.maxMs,
    ])
  })

  it('has those of a dlq', () => {
    expect(policy('a dead item, where the system has a `dlq`').tries).toBe(resolveSystemOptions({}).maxRedrives)
  })
})

describe('the table of defaults', () => {
  const PAGE = 'docs/reference/limits.md'
  const shown = (option: string) => amountIn(row(PAGE, option)[1] ?? '')

  it('has those of a work system', () => {
    const { keep, ...system } = resolveSystemOptions({})
    const real = { ...system, keepCompleted: keep.completedMs, keepDead: keep.deadMs }
    const names = [
      'visibility',
      'heartbeat',
      'pollInterval',
      'stopDrain',
      'keepCompleted',
      'keepDead',
      'maxUnsent',
      'maxStates',
      'redriveCount',
      'maxRedrives',
    ] as const

    expect(Object.fromEntries(names.map((name) => [name, shown(`\`${name}\``)]))).toEqual(
      Object.fromEntries(names.map((name) => [name, real[name]])),
    )
    // The Hopper has an option of that name, too, with another default.
    expect(shown('`concurrency` of a process')).toBe(system.concurrency)
  })

  it('has those of the Hopper and of Spider', () => {
    const hopper = resolveHopperOptions({})
    const spider = resolveSpiderConfig({})

    expect(
      ['concurrency', 'maxInFlight', 'maxLanes', 'maxDeliveries', 'lagIntervalMs'].map((name) => shown(`\`${name}\``)),
    ).toEqual([hopper.concurrency, hopper.maxInFlight, hopper.maxLanes, hopper.maxDeliveries, hopper.lagIntervalMs])
    expect(
      ['maxConcurrentEngines', 'maxConcurrentEnginesPerRig', 'maxEnginesPerRig', 'pollIntervalMs', 'engineLeaseMs'].map(
        (name) => shown(`\`${name}\``),
      ),
    ).toEqual([
      spider.maxConcurrentEngines,
      spider.maxConcurrentEnginesPerRig,
      spider.maxEnginesPerRig,
      spider.pollIntervalMs,
      spider.engineLeaseMs,
    ])
  })
})
