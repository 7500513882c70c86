import { expect, test } from 'vitest'
import { attemptsFrom, attemptText } from '../../../src/backends/redis/stored-texts.js'
import type { Attempt } from '../../../src/ports/item.js'

const was: Attempt = { attempt: 2, startedAt: 1_700_000_000_000.25, endedAt: 1_700_000_000_001, worker: 'w-1' }

test.each<[string, Attempt]>([
  ['with nothing but its times', was],
  ['of a worker whose name needs escapes', { ...was, worker: '"w"\n\ud83d\ude00' }],
  ['that failed', { ...was, class: 'retryable', error: 'too\nlate', fingerprint: 'f' }],
  ['with an error that is empty', { ...was, error: '' }],
])('a run %s is one line, and read as it was', (_, run) => {
  const text = attemptText(run)
  expect(text).not.toContain('\n')
  expect(attemptsFrom(`${text}\n${attemptText(was)}`)).toEqual([run, was])
})

test('what JSON has no number for is written as JSON does, and what is undefined is not written', () => {
  expect(JSON.parse(attemptText({ ...was, startedAt: Number.NaN }))).toEqual([2, null, was.endedAt, 'w-1'])
  expect(attemptText({ ...was, error: undefined } as unknown as Attempt)).toBe(attemptText(was))
})
