import fc from 'fast-check'
import { afterEach, describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { RetryAbort } from '../../src/core/failure/control-errors.js'
import { type RetryOptions, retry } from '../../src/core/retry/retry.js'
import { getDefaultRetryOptions, type RetryState, setDefaultRetryOptions } from '../../src/core/retry/retry-defaults.js'
import { checkRetryPolicy, DEFAULT_RETRY_OPTIONS, mergeRetryPolicies } from '../../src/core/retry/retry-policy.js'
import { FakeClock } from '../../src/testing/fake-clock.js'

afterEach(() => setDefaultRetryOptions())

/** Options whose pauses are recorded instead of taken. */
const recorded = () => {
  const pauses: number[] = []
  const sleep = async (ms: number) => void pauses.push(ms)
  return { pauses, options: { sleep, jitter: 0 } }
}

/** Fails the given number of times, then succeeds. */
const failing = (times: number) => {
  let calls = 0
  return vi.fn(async () => {
    calls += 1
    if (calls <= times) throw new Error(`failure ${calls}`)
    return `success ${calls}`
  })
}

describe('an operation that fails and then succeeds', () => {
  it('is tried again with growing pauses', async () => {
    const { pauses, options } = recorded()
    expect(await retry(failing(3), { ...options, attempts: 5, base: 100, max: 300 })).toBe('success 4')
    expect(pauses).toEqual([100, 200, 300])
  })

  it('gets the state of the retry, and so do the hooks', async () => {
    const clock = new FakeClock({ startAt: 1000 })
    const seen: RetryState[] = []
    const onRetry = vi.fn()
    const onSuccess = vi.fn()
    const onError = vi.fn()
    const running = retry(
      (state) => {
        seen.push(state)
        if (state.attempt === 1) throw new Error('first')
        return 'ok'
      },
      { sleep: clock.sleep, now: clock.now, jitter: 0, base: 50, onRetry, onSuccess, onError },
    )
    await clock.advance(50)
    expect(await running).toBe('ok')
    expect(seen).toEqual([
      { startAt: 1000, attempt: 1, attempts: 3, lastAttemptAt: 1000 },
      { startAt: 1000, attempt: 2, attempts: 3, lastAttemptAt: 1050, lastError: new Error('first') },
    ])
    expect(onRetry).toHaveBeenCalledExactlyOnceWith(new Error('first'), expect.objectContaining({ attempt: 1 }))
    expect(onSuccess).toHaveBeenCalledExactlyOnceWith('ok', expect.objectContaining({ attempt: 2 }))
    expect(onError).not.toHaveBeenCalled()
  })

  it('a synchronous throw counts as a failure too', async () => {
    const { options } = recorded()
    let calls = 0
    const result = await retry(() => {
      calls += 1
      if (calls === 1) throw new Error('x')
      return calls
    }, options)
    expect(result).toBe(2)
  })
})

describe('an operation that keeps failing', () => {
  it('rejects with the last error after all attempts, and calls each hook with its own errors', async () => {
    const { pauses, options } = recorded()
    const onRetry = vi.fn()
    const onError = vi.fn()
    const fn = failing(99)
    await expect(retry(fn, { ...options, onRetry, onError })).rejects.toThrow('failure 3')
    expect(fn).toHaveBeenCalledTimes(3)
    expect(pauses).toEqual([1000, 2000])
    expect(onRetry.mock.calls.map(([error]) => (error as Error).message)).toEqual(['failure 1', 'failure 2'])
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      new Error('failure 3'),
      expect.objectContaining({ attempt: 3, attempts: 3 }),
    )
  })

  it('gives errorResult instead, if that key is there, whatever its value', async () => {
    const { options } = recorded()
    const onError = vi.fn()
    expect(await retry(failing(99), { ...options, onError, errorResult: 'none' })).toBe('none')
    expect(await retry(failing(99), { ...options, errorResult: undefined })).toBeUndefined()
    expect(onError).toHaveBeenCalledOnce()
    expectTypeOf(retry(async () => 1, { errorResult: null })).resolves.toEqualTypeOf<number | null>()
    expectTypeOf(retry(async () => 1)).resolves.toEqualTypeOf<number>()
  })
})

describe('an operation that must stop', () => {
  it('rejects with the RetryAbort itself where `on` went on and the attempts ran out', async () => {
    const abort = new RetryAbort(new Error('the cause'))
    let calls = 0
    const running = retry(
      () => {
        calls += 1
        throw abort
      },
      { attempts: 3, base: 0, on: () => 0 },
    )
    await expect(running).rejects.toBe(abort)
    expect(calls).toBe(3)
  })

  it('stops at a RetryAbort and rejects with its cause', async () => {
    const cause = new Error('declined')
    const onError = vi.fn()
    const fn = vi.fn(async () => {
      throw new RetryAbort(cause)
    })
    await expect(retry(fn, { onError })).rejects.toBe(cause)
    expect(fn).toHaveBeenCalledOnce()
    expect(onError).toHaveBeenCalledExactlyOnceWith(cause, expect.anything())
    const bare = new RetryAbort()
    await expect(retry(() => Promise.reject(bare))).rejects.toBe(bare)
  })

  it('`on` decides: false stops, a number is the least pause, anything else leaves it to the backoff', async () => {
    const { pauses, options } = recorded()
    const answers = [250, 5, true, undefined, Number.NaN, -1, Infinity, false] as const
    let asked = 0
    const fn = failing(99)
    await expect(
      retry(fn, { ...options, attempts: 50, base: 100, factor: 1, on: () => answers[asked++] }),
    ).rejects.toThrow('failure 8')
    expect(pauses).toEqual([250, 100, 100, 100, 100, 100, 2_147_483_647])
  })

  it('`on` may be asynchronous, and its own failure is the result', async () => {
    const { options } = recorded()
    await expect(retry(failing(99), { ...options, on: async () => false })).rejects.toThrow('failure 1')
    const on = () => {
      throw new Error('broken on')
    }
    await expect(retry(failing(99), { ...options, on })).rejects.toThrow('broken on')
  })

  it('an abort cuts the pause short and is not turned into a result', async () => {
    const clock = new FakeClock()
    const stop = new AbortController()
    const onError = vi.fn()
    const fn = failing(99)
    const running = retry(fn, { sleep: clock.sleep, signal: stop.signal, errorResult: 'none', onError })
    const outcome = expect(running).rejects.toThrow('shutting down')
    await clock.advance(1)
    stop.abort(new Error('shutting down'))
    await outcome
    expect(fn).toHaveBeenCalledOnce()
    expect(onError).toHaveBeenCalledOnce()
    await expect(retry(fn, { signal: stop.signal })).rejects.toThrow('shutting down')
    expect(fn).toHaveBeenCalledOnce()
  })

  it('a pause that fails ends it with that failure', async () => {
    const sleep = async () => {
      throw new Error('no clock')
    }
    await expect(retry(failing(99), { sleep })).rejects.toThrow('no clock')
  })
})

describe('hooks that throw', () => {
  it('change nothing: what succeeded is not repeated', async () => {
    const { options } = recorded()
    const boom = () => {
      throw new Error('broken hook')
    }
    const rejecting = async () => boom()
    const fn = failing(1)
    expect(await retry(fn, { ...options, onSuccess: boom, onRetry: rejecting, onError: boom })).toBe('success 2')
    expect(fn).toHaveBeenCalledTimes(2)
    await expect(retry(failing(99), { ...options, onRetry: boom, onError: rejecting })).rejects.toThrow('failure 3')
  })
})

describe('the default pause', () => {
  it('keeps the process alive until it is over or aborted', async () => {
    // Its own timer: others of the process come and go meanwhile.
    const set = vi.spyOn(globalThis, 'setTimeout')
    const cleared = vi.spyOn(globalThis, 'clearTimeout')
    onTestFinished(() => {
      vi.restoreAllMocks()
    })
    const waitMs = 21_234
    const stop = new AbortController()
    const running = retry(failing(99), { base: waitMs, jitter: 0, signal: stop.signal })
    const outcome = expect(running).rejects.toThrow()
    await new Promise((resolve) => setImmediate(resolve))
    const timers = set.mock.results.filter((_, i) => set.mock.calls[i]![1] === waitMs).map(({ value }) => value)
    expect(timers.map((timer) => timer.hasRef())).toEqual([true])
    stop.abort()
    await outcome
    expect(cleared.mock.calls.map(([timer]) => timer)).toContain(timers[0])
  })
})

describe('process-wide defaults', () => {
  it('are 3 attempts from 1 s, doubling up to 30 s, half left to chance', () => {
    expect(DEFAULT_RETRY_OPTIONS).toEqual({ attempts: 3, base: 1000, factor: 2, max: 30_000, jitter: 0.5 })
    expect(getDefaultRetryOptions()).toEqual(DEFAULT_RETRY_OPTIONS)
    expect(Object.isFrozen(DEFAULT_RETRY_OPTIONS)).toBe(true)
  })

  it('merge over what was set earlier, and go back without an argument', async () => {
    const { pauses, options } = recorded()
    setDefaultRetryOptions({ attempts: 2, sleep: options.sleep })
    setDefaultRetryOptions({ base: 7, jitter: 0, attempts: undefined })
    expect(getDefaultRetryOptions()).toMatchObject({ attempts: 2, base: 7, factor: 2, jitter: 0 })
    await expect(retry(failing(99))).rejects.toThrow('failure 2')
    expect(pauses).toEqual([7])
    setDefaultRetryOptions()
    expect(getDefaultRetryOptions()).toEqual(DEFAULT_RETRY_OPTIONS)
  })

  it('a bad one changes nothing', () => {
    expect(() => setDefaultRetryOptions({ base: 5, attempts: 0 })).toThrow(
      'setDefaultRetryOptions.attempts must be an integer >= 1, got 0',
    )
    expect(() => setDefaultRetryOptions({ onRetry: 5 as never })).toThrow(
      'setDefaultRetryOptions.onRetry must be a function',
    )
    expect(() => setDefaultRetryOptions({ errorResult: 5 } as never)).toThrow('errorResult')
    expect(getDefaultRetryOptions()).toEqual(DEFAULT_RETRY_OPTIONS)
  })
})

describe('policies', () => {
  it('merge field by field, later ones winning, undefined saying nothing', () => {
    const merged = mergeRetryPolicies(DEFAULT_RETRY_OPTIONS, { attempts: 5 }, undefined, { base: 10, attempts: 7 }, {})
    expect(merged).toEqual({ attempts: 7, base: 10, factor: 2, max: 30_000, jitter: 0.5 })
  })

  it('survive JSON', () => {
    const policy = checkRetryPolicy('retry', { attempts: Infinity, max: Infinity, jitter: 'full' })
    expect(policy).toEqual({ attempts: Number.MAX_SAFE_INTEGER, max: 2_147_483_647, jitter: 1 })
    expect(JSON.parse(JSON.stringify(policy))).toEqual(policy)
  })
})

describe('bad options', () => {
  it.each<[object, string]>([
    [{ attempts: 0 }, 'retry.attempts must be an integer >= 1, got 0'],
    [{ attempts: 1.5 }, 'retry.attempts'],
    [{ attempts: null }, 'retry.attempts'],
    [{ base: -1 }, 'retry.base must be a finite number >= 0, got -1'],
    [{ factor: 0 }, 'retry.factor'],
    [{ max: Number.NaN }, 'retry.max'],
    [{ jitter: 2 }, 'retry.jitter'],
    [{ sleep: 5 }, 'retry.sleep must be a function, got 5'],
    [{ on: null }, 'retry.on must be a function, got null'],
    [{ signal: {} }, 'retry.signal must be an AbortSignal, got an object'],
    [{ attempt: 5 }, 'Did you mean "attempts"?'],
    [{ retries: 5 }, '"retries" is not an option of retry'],
  ])('%o is refused before the first attempt', async (options, message) => {
    const fn = failing(0)
    await expect(retry(fn, options as RetryOptions<string>)).rejects.toThrow(message)
    expect(fn).not.toHaveBeenCalled()
  })

  it('so is an operation that is no function', async () => {
    await expect(retry(5 as never)).rejects.toThrow('retry(fn) must be a function, got 5')
    await expect(retry(failing(0), null as never)).rejects.toThrow('retry must be an object of options, got null')
  })

  it('whatever they are, the error names one', async () => {
    const value = fc.oneof(fc.double(), fc.integer({ min: -2, max: 5 }), fc.anything())
    const given = fc.record(
      { attempts: value, base: value, factor: value, max: value, jitter: value },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(given, async (policy) => {
        const sleep = async (ms: number) => {
          if (!(ms >= 0 && ms <= 2_147_483_647)) throw new Error(`bad pause ${ms}`)
        }
        const options = { ...policy, sleep } as unknown as RetryOptions<string>
        const error = await retry(failing(2), options).then(
          () => undefined,
          (thrown: unknown) => thrown,
        )
        if (error === undefined || /^failure \d/.test((error as Error).message)) return
        expect(error).toHaveProperty('code', 'BAD_OPTION')
        expect((error as Error).message).toContain('retry.')
      }),
      { numRuns: 1000 },
    )
  })
})
