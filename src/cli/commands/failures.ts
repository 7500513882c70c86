import type { Ops } from '../../ops/api.js'
import type { FailureGroup } from '../../ports/inspect.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'
import { countText } from '../terminal/bar.js'
import type { Cell } from '../terminal/table.js'
import { classCell } from '../views/states.js'
import { agoText } from '../views/times.js'

const MOST = 50

export const failures = defineCommand({
  name: 'failures',
  summary: 'group dead and retrying items by failure, largest groups first',
  about: ['Items with the same fingerprint failed the same way: list, redrive or discard them together by it.'],
  flags: {
    limit: countFlag('how many groups at most; default: 50', 'n'),
  },
  examples: [
    ['millrace failures', 'what fails, and how often'],
    ['millrace redrive fingerprint:5f3c… --canary', 'give one group another chance, carefully'],
  ],
  async run({ io, screen, flags, isJson, ops: open }) {
    const ops = await open()
    const groups = await ops.failures(flags.limit ?? MOST)
    if (isJson) {
      screen.json({ failures: groups })
      return EXIT.done
    }
    if (groups.length === 0) {
      screen.line('No item is dead or retrying.')
      return EXIT.done
    }
    const now = io.clock.now()
    const errors = await wholeErrors(ops, groups)
    screen.table(
      [
        { title: 'dead', align: 'right' },
        { title: 'retrying', align: 'right' },
        { title: 'type', min: 16, keep: 20 },
        { title: 'class', spare: 1 },
        { title: 'first', spare: 2 },
        { title: 'last', spare: 1 },
        { title: 'fingerprint', isId: true, spare: 0, below: 'fingerprint' },
        { title: 'one of them', isId: true, spare: 3, below: 'one of them' },
        { title: 'error', wraps: true, spare: 4, below: '' },
      ],
      groups.map((group, i): Cell[] => [
        group.dead === 0 ? { text: '0', tone: 'dim' } : { text: countText(group.dead), tone: 'bad' },
        group.retrying === 0 ? { text: '0', tone: 'dim' } : { text: countText(group.retrying), tone: 'warn' },
        group.type,
        classCell(group.class),
        agoText(group.firstAt, now),
        agoText(group.lastAt, now),
        group.fingerprint,
        group.sample.id,
        errors[i]!,
      ]),
    )
    return EXIT.done
  },
})

/** How many errors are read at the same time. */
const TOGETHER = 8

/** What each group failed of. A list has only the beginning of a long error; the rest is read from the sample. */
async function wholeErrors(ops: Ops, groups: readonly FailureGroup[]): Promise<readonly string[]> {
  const errors: string[] = []
  for (let from = 0; from < groups.length; from += TOGETHER)
    errors.push(...(await Promise.all(groups.slice(from, from + TOGETHER).map((group) => wholeError(ops, group)))))
  return errors
}

async function wholeError(ops: Ops, { fingerprint, sample }: FailureGroup): Promise<string> {
  if (!sample.error.endsWith('…')) return sample.error
  const item = await ops.item(sample.id)
  // It may have been redriven, or may have gone, since the groups were read.
  const run = item?.attempts.findLast((one) => one.fingerprint === fingerprint)
  return run?.error ?? item?.error ?? sample.error
}
