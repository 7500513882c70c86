import { BULK_FLAGS, runBulk, targetOf } from '../bulk.js'
import { defineCommand } from '../command.js'

export const redrive = defineCommand({
  name: 'redrive',
  summary: 'give dead items another chance, with their id, group and history',
  operands: '[<id> | filter …]',
  atMost: 20,
  about: [
    'Over one item, a search, or --all. It says how many before it acts, and asks; where nobody can be asked it needs --yes. An action over many is counted and can be gone on with after a kill: millrace proceed.',
    'With --canary one goes first, then ten, then the rest; it stops when one of them fails again in the same way.',
  ],
  flags: {
    ...BULK_FLAGS,
    canary: { kind: 'switch', about: 'one first, then ten, then the rest' },
    'canary-wait': {
      kind: 'duration',
      value: '<time>',
      min: 1,
      about: 'how long to wait for those sent ahead; default: 1m',
    },
  },
  examples: [
    ['millrace redrive charge/o-3 --why "the terminal is back"', 'one item'],
    ['millrace redrive type:charge class:retryable --dry-run', 'how many that would be'],
    ['millrace redrive --all --canary --yes', 'all that is dead, carefully, from a script'],
  ],
  async run(call) {
    const target = targetOf(call, 'redrive')
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
