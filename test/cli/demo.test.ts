import type { WorkEvent } from 'millrace'
import { describe, expect, it } from 'vitest'
import { storyLines } from '../../src/cli/demo/run.js'
import { plain } from '../../src/cli/terminal/paint.js'

describe('an event of the demonstration', () => {
  const of = { id: 'charge/o-1', type: 'charge', groupId: 'charge/o-1', attempt: 1, at: 0 }
  const failed: WorkEvent = {
    ...of,
    kind: 'failed',
    error: 'Error: the card terminal answered 503 Service Unavailable',
    class: 'retryable',
    rule: 'http-503',
    willRetry: true,
  }

  it('says everything, also what becomes of a failure, however narrow the terminal is', () => {
    expect(storyLines(failed, 230, plain, 79)).toEqual([
      '  0.23 s  failed    charge/o-1   attempt 1: Error: the card terminal answered',
      '                                 503 Service Unavailable (retryable: retried)',
    ])
  })

  it('is one line without a terminal, and none where it would tell nothing', () => {
    expect(storyLines(failed, 230, plain, Infinity)).toHaveLength(1)
    expect(storyLines({ ...of, kind: 'succeeded', result: 'ok' }, 0, plain, 79)).toEqual([
      '  0.00 s  done      charge/o-1',
    ])
    expect(storyLines({ ...of, kind: 'started' }, 0, plain, 79)).toEqual([])
  })
})
