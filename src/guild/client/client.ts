import { OptionTypeError, oneOfOption, optionsObject, stringOption } from '../../core/options.js'
import { type Clock, clockFrom, type Random, systemClock } from '../../core/time/clock.js'
import type { ClerkApi } from '../clerk/api.js'
import { editWrit } from '../clerk/writs/edit.js'
import { postWrit } from '../clerk/writs/post.js'
import { countWrits, listWrits, resolveWritId } from '../clerk/writs/query.js'
import type { WritDoc } from '../clerk/writs/writ.js'
import { writIds } from '../clerk/writs/writ-ids.js'
import type { InputRequestDoc } from '../spider/rigs/rig.js'
import { backendOf, checkedConfig, type StacksConfig } from '../stacks/apparatus.js'
import type { StacksBackend } from '../stacks/backend.js'
import { openStacks } from '../stacks/stacks.js'
import { answerQuestion, openQuestions, type QuestionFilter } from './questions.js'
import { RemoteClerk } from './remote-clerk.js'
import { cancelWrit, openWrit } from './writ-acts.js'

/** Options of `guildClient`. */
export interface GuildClientOptions {
  /** Where the guild keeps its documents: what its `guild.json` has under `stacks`, or a backend of `millrace/guild/stacks`. */
  readonly stacks: StacksConfig | StacksBackend
  /** The folder of the guild, where a relative `file` starts. Default: the working directory. */
  readonly home?: string
  /** `allow`: write although plugins of the workers would see it in the transaction. Default: `refuse`. */
  readonly differentWatchers?: 'refuse' | 'allow'
  readonly clock?: Clock | (() => number)
  readonly random?: Random
}

/** A guild, for a process that only posts writs: no engine, no plugin, nothing that runs. */
export interface GuildClient extends Pick<ClerkApi, 'post' | 'edit' | 'show' | 'resolveId' | 'list' | 'count'> {
  /** Opens a draft. */
  open(id: string): Promise<WritDoc>
  /** Ends a writ as cancelled, with those below it; a worker ends its rig. One that is cancelled already is returned as it is. */
  cancel(id: string, options?: { readonly reason?: string }): Promise<WritDoc>
  /** Questions of engines to people that have no answer yet, of one writ or of all: a thousand at most. */
  questions(filter?: QuestionFilter): Promise<InputRequestDoc[]>
  /** Answers a question, once: the engine that waits for it goes on within ten seconds. The answers must survive JSON. */
  answer(questionId: string, answers: unknown): Promise<InputRequestDoc>
  /** Closes its connections. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** What `guildClient` of the door does. */
export async function openGuildClient(given: GuildClientOptions): Promise<GuildClient> {
  const options = optionsObject('guildClient()', given, ['stacks', 'home', 'differentWatchers', 'clock', 'random'])
  if (typeof options.stacks !== 'object' || options.stacks === null)
    throw new OptionTypeError('guildClient().stacks', 'where the guild keeps its documents', options.stacks)
  const clock = options.clock === undefined ? systemClock : clockFrom(options.clock)
  const random = options.random ?? Math.random
  const ways = ['refuse', 'allow'] as const
  const differentWatchers = oneOfOption('guildClient().differentWatchers', options.differentWatchers, ways, 'refuse')
  const backend = 'begin' in options.stacks ? options.stacks : backendOf(checkedConfig(options.stacks), clock)
  const home = options.home === undefined ? {} : { home: stringOption('guildClient().home', options.home) }
  const stacks = await openStacks({ ...home, backend, clock, random })
  const clerk = new RemoteClerk({ stacks, clock, differentWatchers })
  const newWritId = writIds(clock, random)
  const close = () => stacks.close()
  return Object.freeze<GuildClient>({
    post: async (writ) => clerk.change((context) => postWrit(context, newWritId, writ)),
    edit: async (change) => clerk.change((context) => editWrit(context, change)),
    open: async (id) => clerk.change((context) => openWrit(context, stringOption('open(id)', id))),
    cancel: async (id, how) => {
      const { reason } = optionsObject<{ readonly reason?: string }>('cancel()', how, ['reason'])
      const why = reason === undefined ? undefined : stringOption('cancel().reason', reason)
      return clerk.change((context) => cancelWrit(context, stringOption('cancel(id)', id), why))
    },
    questions: async (filter) => openQuestions(stacks, filter),
    answer: async (questionId, answers) => answerQuestion(stacks, questionId, answers),
    show: async (id) => clerk.reader.need(stringOption('show(id)', id)),
    resolveId: async (idOrPrefix) => resolveWritId(clerk.reader, idOrPrefix),
    list: async (listing) => listWrits(clerk.reader, listing),
    count: async (filter) => countWrits(clerk.reader, filter),
    close,
    [Symbol.asyncDispose]: close,
  })
}
