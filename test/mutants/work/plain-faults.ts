import type { OneLineFault } from '../one-line-faults.js'

const simulation = {
  file: 'test/simulation/plain.slow.test.ts',
  test: 'under every kind of trouble keeps its promises',
}

/** What an adapter over plain ports could get wrong, and `@ayepi/work` partly did. */
export const PLAIN_FAULTS: readonly OneLineFault[] = [
  {
    // W1
    fault: 'a retry is acked before it is pushed',
    file: 'src/backends/plain/settle.ts',
    find: "  held.decided = 'retry'\n",
    replace: "  held.decided = 'retry'\n  if (pulled !== undefined) await queue.ack(pulled)\n",
    caughtBy: simulation,
  },
  {
    // W4
    fault: 'the end of an item takes one off its group, unconditionally',
    file: 'src/backends/plain/after-outcome.ts',
    find: 'const counted = await counters.incrementOnce(keys.open(groupId), marker, -left, ttl, lease.token)',
    replace:
      'const counted = { value: await counters.increment(keys.open(groupId), -left, ttl) }\n        await store.claim(marker, lease.token, ttl)',
    caughtBy: simulation,
  },
  {
    fault: 'the plan of another run does not count',
    file: 'src/backends/plain/settle.ts',
    find: 'if (other !== undefined && other.run >= run) return other.token === plan.token',
    replace: '',
    caughtBy: {
      file: 'test/backends/plain/settle.test.ts',
      test: 'a plan is refused when another run of the item has carried out its own',
    },
  },
  {
    // W3
    fault: 'what has ended runs again when it is delivered again',
    file: 'src/backends/plain/decide-delivery.ts',
    find: "  if (facts.isSettled) return { kind: 'complete' }\n",
    replace: '',
    caughtBy: simulation,
  },
  {
    // W3
    fault: 'a plan is not resumed',
    file: 'src/backends/plain/decide-delivery.ts',
    find: "if (plan !== undefined && plan.run === run) return { kind: 'resume', plan }",
    replace: '',
    caughtBy: simulation,
  },
  {
    // W1
    fault: 'an old copy is dropped without a check that the new one is there',
    file: 'src/backends/plain/put-back.ts',
    find: "if (by.status === 'pending' && runOf(by.envelope) === runOf(envelope)) {",
    replace: "if (by.status === 'completed' && runOf(by.envelope) === runOf(envelope)) {",
    caughtBy: simulation,
  },
  {
    // W12
    fault: 'an occurrence whose push succeeded without an answer is taken back, count and state',
    file: 'src/backends/plain/schedules.ts',
    find: '{ ...sorted, controls: [], cancels: [] }, true)',
    replace: '{ ...sorted, controls: [], cancels: [] }, false)',
    caughtBy: { file: 'test/backends/plain/schedules.test.ts', test: 'whose push was done, and its answer lost' },
  },
]
