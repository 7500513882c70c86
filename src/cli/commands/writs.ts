import { MANDATE } from '../../guild/clerk/mandate.js'
import type { Ops } from '../../ops/api.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { clean } from '../terminal/clean.js'
import { didYouMean } from '../usage-error.js'
import { WRIT_COLUMNS, writCells } from '../views/writ.js'

const MOST = 50
/** Types of writs name phases of their own: those of so many writs are looked at before one is called unheard of. */
const LOOKED_AT = 1_000

export const writs = defineCommand({
  name: 'writs',
  summary: "the guild's writs by phase, type or parent, the newest first",
  about: ["Reads the guild's documents (Stacks) in the same file or database. Looking creates nothing."],
  flags: {
    phase: { kind: 'text', value: '<phase>', about: 'in this phase' },
    type: { kind: 'text', value: '<type>', about: 'of this type' },
    parent: { kind: 'text', value: '<id>', about: 'children of this writ' },
    limit: { kind: 'number', value: '<n>', short: 'n', min: 1, isWhole: true, about: 'how many at most; default: 50' },
    offset: { kind: 'number', value: '<n>', min: 0, isWhole: true, about: 'leave out so many first' },
  },
  examples: [['millrace writs --phase stuck --backend sqlite:./stacks.sqlite', 'what needs somebody']],
  async run({ screen, flags, isJson, ops: open }) {
    const { phase, type, parent, limit = MOST, offset } = flags
    const ops = await open({ guild: true })
    const found = await ops.writs({
      ...(phase === undefined ? {} : { phase }),
      ...(type === undefined ? {} : { type }),
      ...(parent === undefined ? {} : { parentId: parent }),
      ...(offset === undefined ? {} : { offset }),
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

/** A phase may be right though nothing is in it; one that nobody has heard of was probably mistyped. */
async function phaseHint(ops: Ops, phase: string): Promise<string | undefined> {
  const ofMandates = MANDATE.states.map(({ name }) => name)
  if (ofMandates.includes(phase)) return undefined
  const seen = await ops.writs({ limit: LOOKED_AT })
  const phases = [...new Set([...ofMandates, ...seen.map((writ) => writ.phase)])]
  if (phases.includes(phase)) return undefined
  return clean(`No writ is in a phase "${phase}": there are ${phases.join(', ')}.${didYouMean(phase, phases)}`)
}
