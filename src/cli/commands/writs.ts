import { defined } from '../../core/defined.js'
import { closestHint } from '../../core/text/did-you-mean.js'
import { MANDATE } from '../../guild/clerk/types/mandate.js'
import type { Ops } from '../../ops/api.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { countFlag } from '../input/flags.js'
import { clean } from '../terminal/clean.js'
import { WRIT_COLUMNS, writCells } from '../views/writ.js'

const MOST = 50
/** Types of writs define their own phases: those of this many writs are checked before a phase counts as unknown. */
const MOST_READ = 1_000

export const writs = defineCommand({
  name: 'writs',
  summary: "list the guild's writs by phase, type or parent, newest first",
  about: ["Reads the guild's documents (Stacks) in the same file or database, and creates nothing."],
  flags: {
    phase: { kind: 'text', value: '<phase>', about: 'in this phase' },
    type: { kind: 'text', value: '<type>', about: 'of this type' },
    parent: { kind: 'text', value: '<id>', about: 'children of this writ' },
    limit: countFlag('how many at most; default: 50', 'n'),
    offset: { kind: 'number', value: '<n>', min: 0, isWhole: true, about: 'skip this many' },
  },
  examples: [['millrace writs --phase stuck --backend sqlite:./stacks.sqlite', 'writs that need attention']],
  async run({ screen, flags, isJson, ops: open }) {
    const { phase, type, parent, limit = MOST, offset } = flags
    const ops = await open({ guild: true })
    const found = await ops.writs({
      ...defined({ phase, type, parentId: parent, offset }),
      limit,
    })
    if (found.length === 0 && phase !== undefined) {
      const hint = await phaseHint(ops, phase)
      if (hint !== undefined) screen.note(hint)
    }
    if (isJson) screen.json({ writs: found })
    else if (found.length === 0) screen.line('No writ matches.')
    else {
      screen.table(WRIT_COLUMNS, found.map(writCells))
      if (found.length === limit) screen.note(`There may be more: --offset ${(offset ?? 0) + limit}`)
    }
    return EXIT.done
  },
})

/** A known phase may be empty; an unknown one was probably mistyped. */
async function phaseHint(ops: Ops, phase: string): Promise<string | undefined> {
  const ofMandates = MANDATE.states.map(({ name }) => name)
  if (ofMandates.includes(phase)) return undefined
  const seen = await ops.writs({ limit: MOST_READ })
  const phases = [...new Set([...ofMandates, ...seen.map((writ) => writ.phase)])]
  if (phases.includes(phase)) return undefined
  return clean(`No writ is in a phase "${phase}": there are ${phases.join(', ')}.${closestHint(phase, phases)}`)
}
