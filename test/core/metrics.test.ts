import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_BUCKETS } from '../../src/core/metrics/distribution.js'
import { createMetrics } from '../../src/core/metrics/metrics.js'
import type { Labels, StatValue } from '../../src/core/metrics/stat.js'

describe('counters and gauges', () => {
  it('the same name and labels are the same series', () => {
    const metrics = createMetrics()
    metrics.counter('hits').inc()
    metrics.counter('hits').inc(4)
    expect(metrics.counter('hits').value()).toBe(5)
    expect(metrics.counter('hits')).toBe(metrics.counter('hits'))
    expect(metrics.get('hits')).toEqual({ meta: { name: 'hits', kind: 'counter' }, labels: {}, value: 5 })
  })

  it('a gauge is set, added to and raised', () => {
    const gauge = createMetrics().gauge('inflight')
    gauge.set(3)
    gauge.add(2)
    expect(gauge.value()).toBe(5)
    gauge.add(-4)
    expect(gauge.value()).toBe(1)
    gauge.max(10)
    gauge.max(4)
    gauge.max(Number.NaN)
    expect(gauge.value()).toBe(10)
  })

  it('a name is one kind of metric only', () => {
    const metrics = createMetrics()
    metrics.counter('x')
    expect(() => metrics.gauge('x')).toThrow('metric "x" already exists as a counter, not a gauge')
    expect(() => metrics.summary('x', { type: 'a' })).toThrow('metric "x" already exists as a counter, not a summary')
    expect(metrics.list()).toHaveLength(1)
  })

  it('what is no number, or a falling counter, is refused by name and leaves the value alone', () => {
    const metrics = createMetrics()
    metrics.counter('c').inc(2)
    for (const bad of [-1, Number.NaN, '5' as unknown as number])
      expect(() => metrics.counter('c').inc(bad)).toThrow(/counter "c" takes a number of at least 0; use a gauge/)
    expect(() => metrics.gauge('g').set('5' as unknown as number)).toThrow(/gauge "g" takes a number; got "5"/)
    expect(() => metrics.gauge('g').add('5' as unknown as number)).toThrow(/gauge "g"/)
    expect(() => metrics.summary('s').observe(Number.NaN)).toThrow(/summary "s" takes a number that is not NaN/)
    expect(() => metrics.counter('')).toThrow(/non-empty string/)
    expect([metrics.get('c')?.value, metrics.get('g')?.value, metrics.get('s')?.value]).toEqual([2, 0, 0])
  })

  it('works when its methods are taken off it', () => {
    const { counter, list, get } = createMetrics()
    const { inc, value } = counter('c')
    inc()
    expect([value(), list().length, get('c')?.value]).toEqual([1, 1, 1])
  })
})

describe('labels', () => {
  it('distinguish series, whatever the order of their names', () => {
    const metrics = createMetrics()
    metrics.counter('jobs', { type: 'a', queue: '1' }).inc()
    metrics.counter('jobs', { queue: '1', type: 'a' }).inc()
    metrics.counter('jobs', { type: 'b' }).inc()
    expect(metrics.get('jobs', { type: 'a', queue: '1' })?.value).toBe(2)
    expect(metrics.get('jobs', { type: 'b' })?.value).toBe(1)
    expect(metrics.get('jobs')).toBeUndefined()
    expect(metrics.get('missing')).toBeUndefined()
    expect(metrics.list()).toHaveLength(2)
  })

  it('cannot be mistaken for each other by what is in them', () => {
    const metrics = createMetrics()
    const tricky: Labels[] = [
      { a: 'b,c=d' },
      { a: 'b', c: 'd' },
      { 'a=b,c': 'd' },
      { a: 'b\0c', c: '' },
      { '': '' },
      {},
      { __proto__x: 'x' },
      JSON.parse('{"__proto__":"p"}') as Labels,
    ]
    tricky.forEach((labels, at) => {
      metrics.counter('n', labels).inc(at + 1)
    })
    expect(metrics.list()).toHaveLength(tricky.length)
    tricky.forEach((labels, at) => {
      expect(metrics.get('n', labels)?.value).toBe(at + 1)
    })
    expect(Object.keys(metrics.get('n', tricky.at(-1))!.labels)).toEqual(['__proto__'])
  })

  it('two series are the same exactly when their labels are', () => {
    const dictionary = fc.dictionary(fc.string({ maxLength: 4 }), fc.string({ maxLength: 4 }), { maxKeys: 3 })
    fc.assert(
      fc.property(fc.array(dictionary, { maxLength: 8 }), (all) => {
        const metrics = createMetrics()
        const sorted = (labels: Labels) => JSON.stringify(Object.entries(labels).sort())
        const distinct = new Set(all.map(sorted))
        for (const labels of all) metrics.counter('c', labels).inc()
        expect(new Set(metrics.list().map((stat) => sorted(stat.labels)))).toEqual(distinct)
        for (const labels of all)
          expect(metrics.get('c', Object.fromEntries(Object.entries(labels).reverse()))?.value).toBe(
            all.filter((other) => sorted(other) === sorted(labels)).length,
          )
      }),
      { numRuns: 1000 },
    )
  })

  it('are copied, so that a caller may reuse its object', () => {
    const metrics = createMetrics()
    const labels: Record<string, string> = { type: 'a' }
    metrics.counter('c', labels).inc()
    labels['type'] = 'b'
    expect(metrics.list()[0]!.labels).toEqual({ type: 'a' })
    expect(metrics.get('c', labels)).toBeUndefined()
  })

  it('description and unit belong to the metric; the first to be given stays', () => {
    const metrics = createMetrics()
    metrics.counter('jobs', { type: 'a' }, { description: 'jobs done' })
    metrics.counter('jobs', { type: 'b' }, { description: 'something else', unit: 'count' })
    for (const stat of metrics.list())
      expect(stat.meta).toEqual({ name: 'jobs', kind: 'counter', description: 'jobs done', unit: 'count' })
  })

  it('list(name) is the series of one metric', () => {
    const metrics = createMetrics()
    metrics.counter('a', { t: '1' })
    metrics.counter('b')
    metrics.counter('a', { t: '2' })
    expect(metrics.list('a').map((stat) => stat.labels['t'])).toEqual(['1', '2'])
    expect(metrics.list('c')).toEqual([])
    expect(metrics.list().map((stat) => stat.meta.name)).toEqual(['a', 'a', 'b'])
  })
})

describe('summaries', () => {
  it('without buckets: count, total, min, max and avg; value is the count', () => {
    const metrics = createMetrics()
    const summary = metrics.summary('lat', { type: 'e' }, { unit: 'ms' })
    for (const value of [10, 30, 20]) summary.observe(value)
    expect(summary.snapshot()).toEqual({ count: 3, total: 60, min: 10, max: 30, avg: 20 })
    expect(metrics.get('lat', { type: 'e' })).toMatchObject({ value: 3, summary: { count: 3 } })
  })

  it('is all zeros while empty', () => {
    expect(createMetrics().summary('s').snapshot()).toEqual({ count: 0, total: 0, min: 0, max: 0, avg: 0 })
    const { quantiles, buckets } = createMetrics({ quantiles: [0.5], buckets: [1] })
      .summary('s')
      .snapshot()
    expect(quantiles).toEqual({ '0.5': 0 })
    expect(buckets).toEqual([
      { le: 1, count: 0 },
      { le: Infinity, count: 0 },
    ])
  })

  it('min and max are right for values that are all negative', () => {
    const summary = createMetrics().summary('s')
    summary.observe(-5)
    summary.observe(-9)
    expect(summary.snapshot()).toEqual({ count: 2, total: -14, min: -9, max: -5, avg: -7 })
  })

  it('buckets are cumulative and include their bound; the last is Infinity', () => {
    const summary = createMetrics({ buckets: [10, 100] }).summary('lat')
    for (const value of [5, 10, 11, 500]) summary.observe(value)
    const snapshot = summary.snapshot()
    expect(snapshot.buckets).toEqual([
      { le: 10, count: 2 },
      { le: 100, count: 3 },
      { le: Infinity, count: 4 },
    ])
    expect(snapshot.quantiles).toEqual({})
  })

  it('quantiles without buckets get the default buckets', () => {
    const summary = createMetrics({ quantiles: [0.5, 0.95, 0.99] }).summary('lat')
    for (let value = 1; value <= 100; value += 1) summary.observe(value)
    const { buckets, quantiles, max } = summary.snapshot()
    expect(buckets!.map((bucket) => bucket.le)).toEqual([...DEFAULT_BUCKETS, Infinity])
    expect(quantiles).toEqual({ '0.5': 50, '0.95': 95, '0.99': 99 })
    expect(max).toBe(100)
  })

  it('the default buckets reach from 1 ms to a minute', () => {
    expect(DEFAULT_BUCKETS).toEqual([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000])
  })

  it('a quantile is linear inside its bucket, within min and max, and max where it overflows', () => {
    const summary = createMetrics({ quantiles: [0, 0.25, 0.5, 0.99], buckets: [100, 200] }).summary('s')
    for (const value of [110, 190, 190, 999]) summary.observe(value)
    // Three of four lie between 100 and 200: the second is two thirds of the way, and the first is not below the minimum.
    expect(summary.snapshot().quantiles).toEqual({
      '0': 110,
      '0.25': expect.closeTo(133.33, 1),
      '0.5': expect.closeTo(166.67, 1),
      '0.99': 999,
    })
  })

  it('estimates rise with q and stay between min and max, whatever was observed', () => {
    const number = fc.oneof(fc.integer({ min: -1000, max: 100_000 }), fc.double({ noNaN: true, min: -1e9, max: 1e9 }))
    const ascending = fc.uniqueArray(fc.integer({ min: -500, max: 70_000 }), { maxLength: 6 })
    fc.assert(
      fc.property(fc.array(number, { minLength: 1 }), ascending, (values, bounds) => {
        const q = [0, 0.1, 0.5, 0.9, 0.99, 1]
        const metrics = createMetrics({ quantiles: q, buckets: bounds.toSorted((a, b) => a - b) })
        const summary = metrics.summary('s')
        for (const value of values) summary.observe(value)
        const { quantiles, min, max, buckets, count } = summary.snapshot()
        const estimates = q.map((one) => quantiles![String(one)]!)
        expect(estimates).toEqual(estimates.toSorted((a, b) => a - b))
        expect(estimates[0]).toBeGreaterThanOrEqual(min)
        expect(estimates.at(-1)).toBeLessThanOrEqual(max)
        expect(buckets!.at(-1)).toEqual({ le: Infinity, count })
        for (const bucket of buckets!) expect(bucket.count).toBe(values.filter((value) => value <= bucket.le).length)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('subscribers', () => {
  function manual() {
    const flushes: (() => void)[] = []
    const metrics = createMetrics({ schedule: (flush) => flushes.push(flush) })
    return { metrics, flushes }
  }

  it('are notified once of everything that changed, with the values of that moment', () => {
    const { metrics, flushes } = manual()
    const seen: (readonly StatValue[])[] = []
    metrics.subscribe((changed) => seen.push(changed))
    metrics.counter('quiet')
    metrics.counter('x').inc()
    metrics.counter('x').inc()
    metrics.gauge('y').set(7)
    metrics.summary('z').observe(3)
    expect(flushes).toHaveLength(1)
    flushes[0]!()
    expect(seen.map((batch) => batch.map((stat) => [stat.meta.name, stat.value]))).toEqual([
      [
        ['x', 2],
        ['y', 7],
        ['z', 1],
      ],
    ])
    flushes[0]!()
    expect(seen).toHaveLength(1)
    metrics.counter('x').inc()
    expect(flushes).toHaveLength(2)
    flushes[1]!()
    expect(seen[1]!.map((stat) => stat.value)).toEqual([3])
  })

  it('are notified in a microtask by default, and no more after unsubscribing', async () => {
    const metrics = createMetrics()
    let calls = 0
    const off = metrics.subscribe(() => {
      calls += 1
    })
    metrics.counter('x').inc()
    expect(calls).toBe(0)
    await Promise.resolve()
    expect(calls).toBe(1)
    metrics.counter('x').inc()
    off()
    off()
    await Promise.resolve()
    expect(calls).toBe(1)
  })

  it('one that throws or rejects disturbs no other, and is reported', async () => {
    const errors: unknown[] = []
    const metrics = createMetrics({ onError: (error) => errors.push(error) })
    const received: number[] = []
    metrics.subscribe(() => {
      throw new Error('boom')
    })
    metrics.subscribe(async () => {
      throw new Error('later boom')
    })
    metrics.subscribe((changed) => received.push(changed.length))
    metrics.counter('x').inc()
    await new Promise((resolve) => setImmediate(resolve))
    expect(received).toEqual([1])
    expect(errors.map(String)).toEqual(['Error: boom', 'Error: later boom'])
  })

  it('a broken onError and a broken schedule do not reach the caller that counts', async () => {
    const received: number[] = []
    const metrics = createMetrics({
      schedule: () => {
        throw new Error('no schedule')
      },
      onError: () => {
        throw new Error('no reporter')
      },
    })
    metrics.subscribe((changed) => received.push(changed.length))
    metrics.counter('x').inc()
    await Promise.resolve()
    expect(received).toEqual([1])
  })

  it('without them nothing is scheduled or remembered', () => {
    const { metrics, flushes } = manual()
    metrics.counter('x').inc()
    expect(flushes).toHaveLength(0)
    const seen: number[] = []
    const off = metrics.subscribe((changed) => seen.push(changed.length))
    off()
    metrics.counter('x').inc()
    expect(flushes).toHaveLength(0)
    expect(metrics.get('x')?.value).toBe(2)
  })

  it('a change between two subscribers is not lost to the second', () => {
    const { metrics, flushes } = manual()
    const off = metrics.subscribe(() => {})
    metrics.counter('x').inc()
    off()
    const seen: (readonly StatValue[])[] = []
    metrics.subscribe((changed) => seen.push(changed))
    metrics.counter('x').inc()
    flushes[0]!()
    expect(seen.map((batch) => batch[0]!.value)).toEqual([2])
    metrics.counter('x').inc()
    flushes[1]!()
    expect(seen).toHaveLength(2)
  })

  it('a schedule that runs immediately delivers each change', () => {
    const metrics = createMetrics({ schedule: (flush) => flush() })
    const seen: number[] = []
    metrics.subscribe((changed) => seen.push(changed[0]!.value))
    metrics.counter('x').inc()
    metrics.counter('x').inc()
    expect(seen).toEqual([1, 2])
  })

  it('the same function subscribed twice is notified twice, and unsubscribed one by one', () => {
    const { metrics, flushes } = manual()
    let calls = 0
    const listener = () => {
      calls += 1
    }
    const off = metrics.subscribe(listener)
    metrics.subscribe(listener)
    metrics.counter('x').inc()
    flushes[0]!()
    expect(calls).toBe(2)
    off()
    metrics.counter('x').inc()
    flushes[1]!()
    expect(calls).toBe(3)
  })
})

describe('bad options', () => {
  it('are refused by name', () => {
    expect(() => createMetrics({ quantiles: [0.5, 2] })).toThrow(/createMetrics\.quantiles\[1\] must be .* got 2/)
    expect(() => createMetrics({ quantiles: 0.5 as unknown as number[] })).toThrow(/createMetrics\.quantiles/)
    expect(() => createMetrics({ buckets: [10, 5] })).toThrow(/createMetrics\.buckets\[1\] must be .*> 10, got 5/)
    expect(() => createMetrics({ buckets: [Number.NaN] })).toThrow(/createMetrics\.buckets\[0\]/)
    expect(() => createMetrics({ schedule: 5 as unknown as () => void })).toThrow(/createMetrics\.schedule/)
    expect(() => createMetrics({ bucket: [1] } as object)).toThrow(/Did you mean "buckets"/)
  })

  it('also where something is to be called', () => {
    expect(() => createMetrics({ onError: 5 as never })).toThrow(/createMetrics.onError must be a function, got 5/)
    expect(() => createMetrics().subscribe(5 as never)).toThrow(
      /metrics.subscribe\(listener\) must be a function, got 5/,
    )
  })

  it('a last bound of Infinity is the overflow bucket that is there anyway', () => {
    const { buckets } = createMetrics({ buckets: [1, Infinity] })
      .summary('s')
      .snapshot()
    expect(buckets!.map((bucket) => bucket.le)).toEqual([1, Infinity])
  })
})
