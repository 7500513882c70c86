import fc from 'fast-check'
import { createMetrics } from '../../src/core/metrics/metrics.js'
import type { StatValue } from '../../src/core/metrics/stat.js'

/** Texts that are likely to break a format: its own signs, its own words, anything in Unicode. */
const nastyText = fc.oneof(
  fc.constantFrom(
    'a',
    'a_b',
    'a.b',
    'a-b',
    'a_count',
    'a_sum',
    'a_bucket',
    'le',
    '__name__',
    'quantile',
    '9',
    '',
    ' ',
    ':',
  ),
  fc.string({
    unit: fc.constantFrom('a', '_', '.', '"', '\\', '\n', '\r', '{', '}', '=', ',', '#', ' ', ':', '7'),
    maxLength: 6,
  }),
  fc.string({ unit: 'binary', maxLength: 6 }),
)

const value = fc.oneof(fc.integer(), fc.double(), fc.constantFrom(0, -0, Infinity, -Infinity, Number.NaN))

const entry = fc.record({
  kind: fc.constantFrom('counter', 'gauge', 'summary'),
  name: nastyText.filter((text) => text !== ''),
  labels: fc.dictionary(nastyText, nastyText, { maxKeys: 3 }),
  description: fc.option(nastyText, { nil: undefined }),
  value,
})

/** The list of a registry that was filled with whatever came. */
export const arbitraryStats: fc.Arbitrary<StatValue[]> = fc
  .tuple(fc.array(entry, { maxLength: 12 }), fc.boolean())
  .map(([entries, hasBuckets]) => {
    const metrics = createMetrics(hasBuckets ? { buckets: [-1, 0.5, 10] } : {})
    for (const { kind, name, labels, description, value } of entries) {
      const known = metrics.list(name)[0]?.meta.kind
      const details = description === undefined ? {} : { description }
      switch (known ?? kind) {
        case 'counter':
          metrics.counter(name, labels, details).inc(Number.isNaN(value) ? 0 : Math.abs(value))
          break
        case 'gauge':
          metrics.gauge(name, labels, details).set(value)
          break
        case 'summary':
          metrics.summary(name, labels, details).observe(Number.isNaN(value) ? 1 : value)
          break
      }
    }
    return metrics.list()
  })
