import { MillraceError } from '../../core/error.js'
import { newId } from '../../core/ids.js'
import { stringOption } from '../../core/options.js'
import type { Clock } from '../../core/time/clock.js'
import type { ClerkContext } from '../../guild/clerk/context.js'
import { resolveWritId } from '../../guild/clerk/writs/query.js'
import type { WritDoc } from '../../guild/clerk/writs/writ.js'
import { RemoteClerk } from '../../guild/client/remote-clerk.js'
import { cancelWrit, openWrit, retryWrit } from '../../guild/client/writ-acts.js'
import type { StacksApi } from '../../guild/stacks/api.js'
import { readActor } from '../actions/selection.js'
import type { Actor, Ops } from '../api.js'
import type { GuildStacks } from './books.js'
import { writSummary } from './writ-facts.js'
import type { WritLogDoc } from './writ-log.js'

export type WritActions = Pick<Ops, 'openWrit' | 'cancelWrit' | 'retryWrit'>

type Act = (context: ClerkContext, id: string, why: string | undefined) => Promise<WritDoc>

/** What people can do to a writ. Who did it and why is stored in the same transaction. */
export function openWritActions(given: GuildStacks | undefined, clock: Clock): WritActions {
  let clerk: RemoteClerk | undefined

  async function act(call: keyof WritActions, verb: string, run: Act, idOrPrefix: string, by: Actor) {
    const stacks = writable(call, given)
    stringOption(`${call}(id)`, idOrPrefix)
    const { who, why } = readActor(call, by)
    clerk ??= new RemoteClerk({ stacks, clock, differentWatchers: 'refuse' })
    return clerk.change(async (context) => {
      const id = await resolveWritId(context, idOrPrefix)
      const before = await context.need(id)
      const after = await run(context, id, why === '' ? undefined : why)
      const what = `${verb} writ ${id} (${before.phase}${after.phase === before.phase ? '' : ` → ${after.phase}`})`
      const log = stacks.book<WritLogDoc>('clerk', 'log')
      await log.put({ id: newId(), writId: id, at: context.now(), who, why, what })
      return writSummary(after)
    })
  }

  return {
    openWrit: (id, by) => act('openWrit', 'open', openWrit, id, by),
    cancelWrit: (id, by) => act('cancelWrit', 'cancel', cancelWrit, id, by),
    retryWrit: (id, by) => act('retryWrit', 'retry', retryWrit, id, by),
  }
}

function writable(call: string, given: GuildStacks | undefined): StacksApi {
  if (given !== undefined && isStacks(given)) return given
  throw new MillraceError(
    'NOT_SUPPORTED',
    `ops.${call}() writes the documents of a guild: pass openOps(backend, { stacks }), with what openStacks() of millrace/guild/stacks returned.`,
    { facts: { capability: 'stacks' } },
  )
}

function isStacks(given: GuildStacks): given is GuildStacks & StacksApi {
  return (['book', 'readBook', 'watch', 'watched'] as const).every((name) => typeof given[name] === 'function')
}
