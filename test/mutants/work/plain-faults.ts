import type { OneLineFault } from '../one-line-faults.js'

const simulation = {
  file: 'test/simulation/plain.slow.test.ts',
  test: 'under every kind of trouble keeps its promises',
}

/** What an adapter over plain ports could get wrong, and `@ayepi/work` partly did. */
export const PLAIN_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'W1 a retry is acked before it is pushed',
    file: 'src/ports/plain/give-back.ts',
    find: "  held.decided = 'retryAt'\n",
    replace: "  held.decided = 'retryAt'\n  if (pulled !== undefined) await queue.ack(pulled)\n",
    caughtBy: simulation,
  },
  {
    fault: 'W4 the end of an item takes one off its group, unconditionally',
    file: 'src/ports/plain/wind-up.ts',
    find: 'const counted = await counters.incrementOnce(keys.open(groupId), marker, -by, ttl, lease.token)',
    replace:
      'const counted = { value: await counters.increment(keys.open(groupId), -by, ttl) }\n        await store.claim(marker, lease.token, ttl)',
    caughtBy: simulation,
  },
  {
    fault: 'the plan of another run does not count',
    file: 'src/ports/plain/plan.ts',
    find: 'if (other !== undefined && other.run >= run) return other.token === plan.token',
    replace: '',
    caughtBy: {
      file: 'test/ports/plain/settle.test.ts',
      test: 'a plan is refused when another run of the item has carried out its own',
    },
  },
  {
    fault: 'W3 what has ended runs again when it is delivered again',
    file: 'src/ports/plain/judge.ts',
    find: "  if (facts.isSettled) return { kind: 'complete' }\n",
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'W3 a plan is not gone on with',
    file: 'src/ports/plain/judge.ts',
    find: "if (plan !== undefined && plan.run === run) return { kind: 'resume', plan }",
    replace: '',
    caughtBy: simulation,
  },
  {
    fault: 'W1 an old copy goes without a look whether the new one is there',
    file: 'src/ports/plain/deal.ts',
    find: "if (by.status === 'pending' && runOfState(by) === runOf(envelope)) {",
    replace: "if (by.status === 'success' && runOfState(by) === runOf(envelope)) {",
    caughtBy: simulation,
  },
  {
    fault: 'W12 an occurrence whose push went through unheard is taken back, count and state',
    file: 'src/ports/plain/fire.ts',
    find: '{ ...parts, asides: [] }, true)',
    replace: '{ ...parts, asides: [] }, false)',
    caughtBy: { file: 'test/ports/plain/fire.test.ts', test: 'W12 whose push was done, and its answer lost' },
  },
]
