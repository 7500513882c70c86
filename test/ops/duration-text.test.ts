import { expect, it } from 'vitest'
import { durationText, instantText, spanText } from '../../src/ops/duration-text.js'

it.each([
  [0, '0 ms'],
  [40.4, '40 ms'],
  [-5, '0 ms'],
  [999, '999 ms'],
  [185_000, '3 m 5 s'],
  [3_600_000, '1 h'],
  [90_061_000, '1 d 1 h'],
])('%d ms is written as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text)
})

it.each([
  [500, 1_000, '0.5–1 s'],
  [1_000, 1_000, '1 s'],
  [0, 100, '0–100 ms'],
  [15_000, 30_000, '15–30 s'],
  [45_000, 90_000, '0.75–1.5 m'],
  [1_500, 1_500, '1.5 s'],
])('from %d to %d ms is written as %s', (min, max, text) => {
  expect(spanText(min, max)).toBe(text)
})

it('reads an instant the same in every zone', () => {
  expect(instantText(Date.UTC(2026, 0, 2, 3, 4, 5))).toBe('2026-01-02 03:04:05Z')
  expect(instantText(Date.UTC(2026, 0, 2, 3, 4, 5, 7))).toBe('2026-01-02 03:04:05.007Z')
  expect(instantText(Number.POSITIVE_INFINITY)).toBe('never')
})
