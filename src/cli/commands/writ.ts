import { closestHint } from '../../core/text/did-you-mean.js'
import type { Ops } from '../../ops/api.js'
import { ACTOR_FLAGS, actorOf, isConfirmed } from '../bulk.js'
import { type Call, defineCommand } from '../command.js'
import { EXIT, type ExitCode } from '../exit.js'
import type { Flags } from '../input/flags.js'
import { clean } from '../terminal/clean.js'
import { UsageError } from '../usage-error.js'
import { stepsOfWrit } from '../views/next-steps.js'
import { renderWrit } from '../views/writ.js'

const ACTS = ['open', 'retry', 'cancel'] as const
type Act = (typeof ACTS)[number]

const FLAGS = {
  yes: { kind: 'switch', short: 'y', about: 'do not ask for confirmation' },
  ...ACTOR_FLAGS,
} as const satisfies Flags

type WritCall = Call<typeof FLAGS>

export const writ = defineCommand({
  name: 'writ',
  summary:
    'show one writ: its phase, links and rigs, why it is stuck, and whether it is retried; or open, retry or cancel it',
  operands: '[open|retry|cancel] <id>',
  atLeast: 1,
  atMost: 2,
  about: [
    'open opens a draft. retry gives a stuck writ one more rig, also at its cap, and one that waits for its next rig gets it now. cancel ends it, with the writs below it and the rig that is going on, and asks first: what is cancelled stays so.',
    'The beginning of an id is enough. Who did it and why is stored with the writ, and shown by `log`.',
  ],
  flags: FLAGS,
  examples: [
    ['millrace writ w-0198c5…', 'why does it not continue?'],
    ['millrace writ retry w-0198c5… --why "the bank is back"', 'one more rig'],
    ['millrace writ cancel w-0198c5… --yes', 'end it, without a question'],
  ],
  async run(call) {
    const [first = '', second] = call.operands
    if (second === undefined) {
      if (isAct(first)) throw new UsageError(`Which writ? Give its id: millrace writ ${first} <id>.`, 'writ')
      return show(call, first)
    }
    if (!isAct(first))
      throw new UsageError(
        `millrace writ takes ${ACTS.join(', ')} before an id, not "${first}".${closestHint(first, ACTS)}`,
        'writ',
      )
    return act(call, first, second)
  },
})

async function show({ screen, isJson, typed, ops: open }: WritCall, id: string): Promise<ExitCode> {
  const ops = await open({ guild: true })
  const found = await ops.writ(id)
  if (found === undefined) {
    screen.note(`The guild has no writ "${clean(id)}".`)
    return EXIT.negative
  }
  if (isJson) screen.json(found)
  else {
    const reasons = found.reasons.map((reason) => ({
      ...reason,
      commands: stepsOfWrit(reason.code, found.id).map((words) => typed(words)),
    }))
    screen.lines(renderWrit({ ...found, reasons }, screen))
  }
  return EXIT.done
}

async function act(call: WritCall, verb: Act, id: string): Promise<ExitCode> {
  const { screen, flags, isJson } = call
  const ops = await call.ops({ guild: true })
  if (verb === 'cancel' && !flags.yes) {
    const found = await ops.writ(id)
    const below = found?.children.length ?? 0
    const asked = `cancel writ ${clean(found?.id ?? id)}${found === undefined ? '' : ` (${clean(found.title)})`}${below === 0 ? '' : ' and the writs below it'}`
    if (!(await isConfirmed(call, 'writ', asked))) return EXIT.negative
  }
  const after = await runAct(ops, verb, id, actorOf(call))
  if (isJson) screen.json(after)
  else screen.line(`${DONE[verb]} ${clean(after.id)} (${clean(after.title)}): it is ${clean(after.phase)}.`)
  return EXIT.done
}

const DONE: Readonly<Record<Act, string>> = { open: 'Opened', retry: 'Retries', cancel: 'Cancelled' }

function runAct(ops: Ops, verb: Act, id: string, by: { readonly who: string; readonly why?: string }) {
  switch (verb) {
    case 'open':
      return ops.openWrit(id, by)
    case 'retry':
      return ops.retryWrit(id, by)
    case 'cancel':
      return ops.cancelWrit(id, by)
  }
}

const isAct = (word: string): word is Act => (ACTS as readonly string[]).includes(word)
