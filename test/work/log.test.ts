import { afterEach, describe, expect, it, vi } from 'vitest'
import { createWork, defineWork, memoryBackend, PoisonError, type WorkLogger } from '../../src/index.js'
import { FakeClock } from '../../src/testing/fake-clock.js'
import type { WorkLogFacts } from '../../src/types.js'
import { logOption } from '../../src/work/observe/log.js'
import { GROUNDS, isOnMemory, plain, world } from './support.js'

/** A logger as pino is one: the facts first, then the text. */
function recorded() {
  const lines: { readonly level: string; readonly facts: WorkLogFacts; readonly text: string }[] = []
  const at = (level: string) => (facts: WorkLogFacts, text: string) => void lines.push({ level, facts, text })
  const log: WorkLogger = { info: at('info'), warn: at('warn'), error: at('error') }
  const texts = () => lines.map(({ level, text }) => `${level} ${text.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')}`)
  return { log, lines, texts }
}

describe.each(GROUNDS)('the log on %s ports', (ground) => {
  it('has one line for each failed run, dead item, start and stop, and none for what succeeds', async () => {
    const { log, lines, texts } = recorded()
    const flaky = defineWork('flaky', (_: null, ctx) => {
      if (ctx.attempt < 3) throw new TypeError(`no answer\nfrom attempt ${ctx.attempt}`)
    })
    const hopeless = defineWork('hopeless', () => {
      throw new PoisonError('refused')
    })
    const { w, until } = world(ground, { work: [flaky, hopeless], log, retry: { base: 1_000, jitter: 0 } })

    await until(w.enqueue(flaky(null)).result())
    await until(
      w
        .enqueue(hopeless(undefined))
        .result()
        .catch(() => undefined),
    )
    await until(w.stop())

    expect(texts()).toEqual([
      'info worker started: runs flaky, hopeless from queue default',
      'warn flaky <id> failed in attempt 1 of 3 and runs again in 1 s (retryable, default): TypeError: no answer…',
      'warn flaky <id> failed in attempt 2 of 3 and runs again in 2 s (retryable, default): TypeError: no answer…',
      'error hopeless <id> is dead (aborted) after attempt 1 (poison, explicit): PoisonError: refused',
      'info worker stopped',
    ])
    expect(lines[1]?.facts).toMatchObject({
      event: 'retry',
      type: 'flaky',
      attempt: 1,
      delayMs: 1_000,
      class: 'retryable',
      error: 'TypeError: no answer\nfrom attempt 1',
      worker: expect.any(String),
    })
    expect(lines[1]?.facts.detail).toMatch(/TypeError: no answer\nfrom attempt 1\n +at .*log\.test\.ts/)
    expect(lines[3]?.facts).toMatchObject({ event: 'dead', ending: 'aborted', class: 'poison' })
  })

  it('shows errors, reasons of a cancel and foreign bodies after redact only', async () => {
    const { log, lines } = recorded()
    const leaks = defineWork('leaks', () => {
      throw new PoisonError('card 4111 is refused', { cause: new Error('the bank said 4111') })
    })
    const kinds = new Set<string>()
    const redact = (text: string, { kind }: { readonly kind: string }) => {
      kinds.add(kind)
      return text.replaceAll('4111', '****')
    }
    const { w, clock, until } = world(ground, { work: [leaks], log, redact })
    await until(
      w
        .enqueue(leaks(undefined))
        .result()
        .catch(() => undefined),
    )
    const { id } = await until(w.add(leaks(undefined), { delay: 60_000 }))
    await until(w.cancel(id, 'the owner of 4111 asked'))
    await clock.advance(500)

    expect(JSON.stringify(lines)).not.toContain('4111')
    expect(lines.filter(({ text }) => text.includes('****')).map(({ facts }) => facts.event)).toEqual(
      expect.arrayContaining(['dead']),
    )
    expect(kinds).toEqual(new Set(['error']))
  })
})

describe.runIf(isOnMemory)('the log', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  const fails = defineWork('fails', () => {
    throw new PoisonError('x')
  })
  const system = (log: WorkLogger, clock: FakeClock) =>
    createWork({ backend: memoryBackend({ clock }), clock, work: [fails], log, stopDrain: 0 })

  it('writes twenty lines of a storm in a second, and then the number of the others', async () => {
    const { log, texts, lines } = recorded()
    const clock = new FakeClock()
    const w = system(log, clock)
    await w.enqueueMany(Array.from({ length: 1_000 }, () => fails(undefined)))
    await clock.advance(3_000)

    const dead = lines.filter(({ facts }) => facts.event === 'dead')
    const leftOut = lines.filter(({ facts }) => facts.event === 'left-out')
    const count = leftOut.reduce((sum, { facts }) => sum + (facts.leftOut?.dead ?? 0), 0)
    expect(dead.length + count).toBe(1_000)
    expect(dead.length).toBeLessThanOrEqual(60)
    expect(leftOut.length).toBeLessThanOrEqual(3)
    expect(texts().at(-1)).toMatch(/^warn \d+ more lines were left out: \d+ dead$/)
    await w.stop()
  })

  it('writes what was left out before it says that the worker has stopped', async () => {
    const { log, texts } = recorded()
    const clock = new FakeClock()
    const w = system(log, clock)
    await w.enqueueMany(Array.from({ length: 100 }, () => fails(undefined)))
    await clock.advance(100)
    const stopped = w.stop()
    await clock.advance(100)
    await stopped

    expect(texts().slice(-2)).toEqual(['warn 80 more lines were left out: 80 dead', 'info worker stopped'])
  })

  it('says that a lease was lost when it is lost, not when the handler has ended at last', async () => {
    const { log, texts } = recorded()
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const long = defineWork('long', () => new Promise<never>(() => undefined))
    const queue = { ...backend.queue, heartbeat: () => Promise.reject(new Error('no')) }
    const options = {
      ...plain(backend),
      queue,
      clock,
      work: [long],
      visibility: 3_000,
      onError: () => undefined,
      stopDrain: 0,
    }
    const w = createWork({ ...options, log })
    void w.add(long(undefined))
    await clock.advance(4_000)

    expect(texts().slice(1)).toContainEqual(
      'warn long <id> lost its lease in attempt 1: nothing of this run counts, and another worker may run it',
    )
    const stopped = w.stop()
    await clock.advance(2_000)
    await stopped
  })

  it('that was asked for has the errors of the machinery, too, unless onError is called with them', async () => {
    const broken = (onError?: () => void) => {
      const { log, lines } = recorded()
      const clock = new FakeClock()
      const backend = memoryBackend({ clock })
      const queue = { ...backend.queue, pop: () => Promise.reject(new Error('redis://me:secret@db is away')) }
      const w = createWork({ ...plain(backend), queue, clock, work: [fails], log, ...(onError && { onError }) })
      return { lines, clock, w }
    }
    const [heard, unheard] = [broken(() => undefined), broken()]
    for (const { clock, w } of [heard, unheard]) {
      await clock.advance(100)
      await w.stop()
    }

    expect(heard.lines.map(({ facts }) => facts.event)).toEqual(['start', 'stop'])
    expect(unheard.lines.find(({ facts }) => facts.event === 'error')).toMatchObject({
      level: 'error',
      text: 'redis://me:***@db is away',
      facts: { phase: 'queue' },
    })
  })

  it('may throw: neither the work nor the process suffers', async () => {
    const clock = new FakeClock()
    const throws = () => {
      throw new Error('disk full')
    }
    const w = system({ info: throws, warn: throws, error: throws }, clock)
    const { id } = await w.add(fails(undefined))
    await clock.advance(100)

    expect(await w.states([id])).toMatchObject([{ status: 'dead' }])
    await w.stop()
  })

  it('refuses what is no logger', () => {
    for (const log of [{}, { info: () => undefined }, 'yes', null, 1])
      expect(() => createWork({ log: log as never, autoStart: false })).toThrow(
        'createWork.log must be true, false, or a logger with info, warn and error',
      )
  })

  describe('by default', () => {
    const real = { ...new FakeClock(), isReal: true, now: () => 0 } as never
    const written = (act: (target: NonNullable<ReturnType<typeof logOption>>) => void, given?: true) => {
      const spy = vi.spyOn(console, 'error').mockImplementation(() => undefined)
      const target = logOption(given, { hasListener: false, clock: real })
      if (target !== undefined) act(target)
      const lines = spy.mock.calls.map(([line]) => line)
      spy.mockRestore()
      return { lines, target }
    }
    const facts = { event: 'dead', worker: 'w' } as const

    it('writes warnings and errors to stderr, one clean line each', () => {
      vi.stubEnv('NODE_ENV', 'production')
      const { lines, target } = written(({ logger }) => logger.error(facts, 'send 1 is dead: \u001b[2Jboo\nINFO fake'))

      expect(lines).toEqual(['1970-01-01T00:00:00.000Z ERROR millrace: send 1 is dead: ␛[2Jboo␊INFO fake'])
      expect(target).toMatchObject({ isVerbose: false, isGiven: false })
    })

    it('writes nothing in a test runner, under a clock that a test moves, or where the program listens itself', () => {
      expect(written(() => undefined).target).toBeUndefined()
      vi.stubEnv('NODE_ENV', 'production')
      expect(logOption(undefined, { hasListener: false, clock: new FakeClock() })).toBeUndefined()
      expect(logOption(undefined, { hasListener: true, clock: real })).toBeUndefined()
      expect(logOption(false, { hasListener: false, clock: real })).toBeUndefined()
      expect(written(() => undefined, true).target).toMatchObject({ isVerbose: true })
    })
  })
})
