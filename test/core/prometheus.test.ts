import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMetrics } from '../../src/core/metrics/metrics.js'
import { formatPrometheus } from '../../src/core/metrics/prometheus.js'
import { WORK_METRIC_DETAILS, WORK_METRICS } from '../../src/core/metrics/work-metrics.js'
import { arbitraryStats } from './arbitrary-stats.js'

const lines = (text: string) => text.split('\n')

describe('the text exposition', () => {
  // S123
  it('has one TYPE per metric, and the names and labels of the registry', () => {
    const metrics = createMetrics()
    metrics.counter(WORK_METRICS.succeeded, { type: 'p' }).inc()
    metrics.summary(WORK_METRICS.totalTime, { type: 'p' }).observe(12)
    const text = formatPrometheus(metrics.list())
    expect(text).toContain('work_succeeded{type="p"} 1')
    expect(text).toContain('# TYPE work_total_time histogram')
  })

  it('groups the series of a metric under one HELP and one TYPE, wherever they are in the list', () => {
    const metrics = createMetrics()
    metrics.counter('http_requests', { method: 'GET' }).inc(3)
    metrics.gauge('inflight').set(2)
    metrics.counter('http_requests', { method: 'POST' }, { description: 'all requests' }).inc()
    const [get, post, inflight] = metrics.list()
    expect(formatPrometheus([get!, inflight!, post!])).toBe(
      [
        '# HELP http_requests all requests',
        '# TYPE http_requests counter',
        'http_requests{method="GET"} 3',
        'http_requests{method="POST"} 1',
        '# TYPE inflight gauge',
        'inflight 2',
        '',
      ].join('\n'),
    )
  })

  it('writes a summary as a histogram', () => {
    const metrics = createMetrics({ quantiles: [0.95], buckets: [10, 100] })
    const summary = metrics.summary('lat_ms', { type: 'e' })
    summary.observe(5)
    summary.observe(50)
    expect(formatPrometheus(metrics.list())).toBe(
      [
        '# TYPE lat_ms histogram',
        'lat_ms_bucket{type="e",le="10"} 1',
        'lat_ms_bucket{type="e",le="100"} 2',
        'lat_ms_bucket{type="e",le="+Inf"} 2',
        'lat_ms_count{type="e"} 2',
        'lat_ms_sum{type="e"} 55',
        '',
      ].join('\n'),
    )
  })

  it('a summary without buckets has the one bucket that holds everything', () => {
    const metrics = createMetrics()
    metrics.summary('lat').observe(7)
    expect(lines(formatPrometheus(metrics.list()))).toEqual([
      '# TYPE lat histogram',
      'lat_bucket{le="+Inf"} 1',
      'lat_count 1',
      'lat_sum 7',
      '',
    ])
    const orphan = { meta: { name: 'orphan', kind: 'summary' }, labels: {}, value: 0 } as const
    expect(formatPrometheus([orphan])).toContain('orphan_count 0\norphan_sum 0')
  })

  it('sanitises names, escapes values and help, and knows infinity', () => {
    const metrics = createMetrics()
    metrics.counter('9bad.name-here', { 'a.b:c': 'a"b\\c\nd' }, { description: 'two\nlines \\ "quoted"' }).inc()
    metrics.gauge('neg').set(-Infinity)
    metrics.gauge('pos').set(Infinity)
    metrics.gauge('nan').set(Number.NaN)
    metrics.gauge('big').set(1e21)
    metrics.gauge('x:y').set(1)
    const text = formatPrometheus(metrics.list())
    expect(text).toContain('# HELP _9bad_name_here two\\nlines \\\\ "quoted"\n')
    expect(text).toContain('_9bad_name_here{a_b_c="a\\"b\\\\c\\nd"} 1\n')
    expect(text).toMatch(/^neg -Inf$/m)
    expect(text).toMatch(/^pos \+Inf$/m)
    expect(text).toMatch(/^nan NaN$/m)
    expect(text).toMatch(/^big 1e\+21$/m)
    expect(text).toMatch(/^x:y 1$/m)
  })

  it('is empty for an empty list, and otherwise ends its last line, as Prometheus demands', () => {
    expect(formatPrometheus([])).toBe('')
    const metrics = createMetrics()
    metrics.counter('c')
    expect(formatPrometheus(metrics.list())).toBe('# TYPE c counter\nc 0\n')
  })

  it('totalSuffix follows the naming rules of Prometheus', () => {
    const metrics = createMetrics()
    metrics.counter('done')
    metrics.counter('seen_total')
    metrics.gauge('now')
    const text = formatPrometheus(metrics.list(), { totalSuffix: true })
    expect(lines(text).filter((line) => line !== '' && !line.startsWith('#'))).toEqual([
      'done_total 0',
      'seen_total 0',
      'now 0',
    ])
  })
})

describe('names that would become the same', () => {
  const samples = (text: string) => lines(text).filter((line) => line !== '' && !line.startsWith('#'))

  it('stay apart: the one that needed no change keeps its name', () => {
    const metrics = createMetrics()
    metrics.counter('a.b').inc(1)
    metrics.counter('a-b').inc(2)
    metrics.gauge('a_b').set(3)
    const text = formatPrometheus(metrics.list())
    expect(text).toContain('# TYPE a_b gauge\na_b 3\n')
    expect(new Set(samples(text).map((line) => line.split(' ')[0])).size).toBe(3)
    expect(formatPrometheus(metrics.list().toReversed())).toContain('# TYPE a_b gauge')
  })

  it('those that the samples of a histogram have are taken too', () => {
    const metrics = createMetrics()
    metrics.summary('lat').observe(1)
    metrics.counter('lat_count').inc(5)
    metrics.counter('lat.sum').inc(6)
    const names = samples(formatPrometheus(metrics.list())).map((line) => line.split(/[ {]/)[0]!)
    expect(names.slice(0, 3)).toEqual(['lat_bucket', 'lat_count', 'lat_sum'])
    expect(names[3]).toMatch(/^lat_count_\w+$/)
    expect(names[4]).toMatch(/^lat_sum_\w+$/)
  })

  it('so do labels, and `le` of a histogram and `__name__` are not for users', () => {
    const metrics = createMetrics()
    metrics.gauge('g', { 'a.b': '1', a_b: '2', __name__: 'x', '': 'e' }).set(1)
    metrics.summary('s', { le: 'mine' }).observe(1)
    const [gauge, bucket] = samples(formatPrometheus(metrics.list()))
    const names = [...gauge!.matchAll(/(\w+)="/g)].map((match) => match[1])
    expect(new Set(names).size).toBe(4)
    expect(names).toContain('a_b')
    expect(names).not.toContain('__name__')
    expect(bucket).toMatch(/^s_bucket\{le_\w+="mine",le="\+Inf"\} 1$/)
  })

  it('whatever the names, every sample line is its own and well formed', () => {
    const name = '[a-zA-Z_:][a-zA-Z0-9_:]*'
    const label = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"'
    const sample = new RegExp(`^(${name}(?:\\{${label}(?:,${label})*\\})?) (?:[-+]?[0-9.e+-]+|[-+]Inf|NaN)$`, 'u')
    fc.assert(
      fc.property(arbitraryStats, (stats) => {
        const types: string[] = []
        const seen = new Set<string>()
        for (const line of lines(formatPrometheus(stats))) {
          if (line === '' || line.startsWith('# HELP ')) continue
          if (line.startsWith('# TYPE ')) {
            types.push(line.split(' ')[2]!)
            continue
          }
          const key = sample.exec(line)?.[1]
          expect(key, line).toBeDefined()
          expect(seen.has(key!), line).toBe(false)
          seen.add(key!)
        }
        expect(new Set(types).size).toBe(types.length)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the metrics of a work system', () => {
  // S123
  it('are named work.<name>, each with a kind, a description and a unit', () => {
    expect(WORK_METRICS).toEqual({
      queued: 'work.queued',
      started: 'work.started',
      succeeded: 'work.succeeded',
      failed: 'work.failed',
      retried: 'work.retried',
      deferred: 'work.deferred',
      rescheduled: 'work.rescheduled',
      expired: 'work.expired',
      cancelled: 'work.cancelled',
      crashed: 'work.crashed',
      removed: 'work.removed',
      commitErrors: 'work.commit_errors',
      leaseLost: 'work.lease_lost',
      active: 'work.active',
      pending: 'work.pending',
      running: 'work.running',
      peak: 'work.peak_active',
      lastQueued: 'work.last_queued_at',
      lastStarted: 'work.last_started_at',
      lastSucceeded: 'work.last_succeeded_at',
      lastFailed: 'work.last_failed_at',
      queueDepth: 'work.queue_depth',
      waitTime: 'work.wait_time',
      totalTime: 'work.total_time',
      successTime: 'work.success_time',
      errorTime: 'work.error_time',
      delayTime: 'work.delay_time',
      rescheduleTime: 'work.reschedule_time',
      attempts: 'work.attempts',
    })
    expect(Object.keys(WORK_METRIC_DETAILS)).toEqual(Object.keys(WORK_METRICS))
    const kinds = Object.entries(WORK_METRIC_DETAILS).map(([key, { kind }]) => [kind, key] as const)
    const of = (kind: string) => kinds.filter(([one]) => one === kind).map(([, key]) => key)
    expect(of('counter')).toHaveLength(13)
    expect(of('gauge')).toEqual([
      'active',
      'pending',
      'running',
      'peak',
      'lastQueued',
      'lastStarted',
      'lastSucceeded',
      'lastFailed',
      'queueDepth',
    ])
    expect(of('summary')).toEqual([
      'waitTime',
      'totalTime',
      'successTime',
      'errorTime',
      'delayTime',
      'rescheduleTime',
      'attempts',
    ])
  })
})
