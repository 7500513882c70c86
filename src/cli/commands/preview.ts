import type { RetryPolicyOptions } from '../../core/retry/retry-policy.js'
import { durationText } from '../../ops/duration-text.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'
import { readError } from '../input/read-error.js'
import { wrap } from '../screen.js'
import { clean } from '../terminal/clean.js'

export const preview = defineCommand({
  name: 'preview',
  summary: 'predict what happens after a failure: its class, and when each attempt runs',
  operands: '<type> <error>',
  atLeast: 2,
  atMost: 2,
  about: [
    'The error is text, or JSON with name, message, code or status, which the classifier uses. The policy is the one that the live workers of that type report, unless you give one.',
  ],
  flags: {
    attempts: countFlag('attempts in all'),
    base: { kind: 'duration', value: '<time>', min: 0, about: 'wait after the first failure' },
    factor: { kind: 'number', value: '<n>', min: 1, about: 'how much longer each further wait is' },
    max: { kind: 'duration', value: '<time>', min: 0, about: 'longest wait' },
    jitter: { kind: 'number', value: '<0..1>', min: 0, about: 'random share of the wait' },
  },
  examples: [
    ['millrace preview charge \'{"status":503}\'', 'a service that is down'],
    ["millrace preview charge 'PoisonError: no such order'", 'a failure that says what it is'],
    ['millrace preview charge "it broke" --attempts 5 --base 2s', 'with your own policy'],
  ],
  async run({ screen, flags, operands, isJson, ops: open }) {
    const [type = '', text = ''] = operands
    const error = readError(text)
    const { attempts, base, factor, max, jitter } = flags
    const retry: RetryPolicyOptions = { attempts, base, factor, max, jitter }
    const isGiven = Object.values(retry).some((value) => value !== undefined)
    const ops = await open()
    const found = await ops.preview(type, error, isGiven ? { retry } : {})
    if (isJson) {
      screen.json(found)
      return EXIT.done
    }
    screen.facts([
      ['type', found.type],
      ['class', found.class],
      ['rule', found.rule],
      ['policy from', found.policyFrom],
    ])
    screen.line()
    screen.table(
      [{ title: 'attempt', align: 'right' }, { title: 'after' }],
      found.attempts.map(({ attempt, earliestMs, latestMs }) => [String(attempt), spanText(earliestMs, latestMs)]),
    )
    screen.line()
    screen.lines(wrap(clean(found.text), screen.columns))
    return EXIT.done
  },
})

function spanText(earliestMs: number, latestMs: number): string {
  if (latestMs === 0) return 'immediately'
  const earliest = durationText(earliestMs)
  const latest = durationText(latestMs)
  return earliest === latest ? latest : `${earliest} to ${latest}`
}
