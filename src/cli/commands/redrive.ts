import { BULK_FLAGS, runBulk, selectorOf } from '../bulk.js'
import { defineCommand } from '../command.js'

// Flags and output. What a redrive writes is decided in work/control/redrive.ts, and ops/actions carries it out for one item or many.
export const redrive = defineCommand({
  name: 'redrive',
  summary: 'run dead items again, with the same id, group and history',
  operands: '[<id> | filter …]',
  atMost: 20,
  about: [
    'Applies to one item, a search, or --all. It shows how many items it would change and asks; without a terminal it needs --yes. An interrupted action can be continued: millrace continue.',
    'With --canary it redrives one item first, then ten, then the rest; it stops when one of the first fails again in the same way.',
  ],
  flags: {
    ...BULK_FLAGS,
    canary: { kind: 'switch', about: 'one first, then ten, then the rest' },
    'canary-wait': {
      kind: 'duration',
      value: '<time>',
      min: 1,
      about: 'how long to wait for the items sent ahead; default: 1m',
    },
  },
  examples: [
    ['millrace redrive charge/o-3 --why "the terminal is back"', 'one item'],
    ['millrace redrive type:charge class:retryable --dry-run', 'count them first'],
    ['millrace redrive --all --canary --yes', 'all dead items, carefully, from a script'],
  ],
  async run(call) {
    const target = selectorOf(call, 'redrive')
    const { flags } = call
    const canary = {
      ...(flags.canary ? { canary: true } : {}),
      ...(flags['canary-wait'] === undefined ? {} : { canaryWaitMs: flags['canary-wait'] }),
    }
    const ops = await call.ops()
    return runBulk(call, target, {
      verb: 'redrive',
      name: 'redrive',
      past: 'Redrove',
      isCanary: flags.canary,
      act: (what, options) => ops.redrive(what, { ...options, ...canary }),
    })
  },
})
