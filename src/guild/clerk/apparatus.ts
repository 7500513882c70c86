import { booleanOption, functionOption, optionsObject, stringOption } from '../../core/options.js'
import { guild } from '../host/current.js'
import type { Apparatus } from '../host/plugin.js'
import type { StacksApi } from '../stacks/api.js'
import { publishSettings, SETTINGS_BOOK } from '../stacks/settings.js'
import type { ClerkApi } from './api.js'
import { ClerkContext } from './context.js'
import { familyWatcher, hasOpenChildren } from './families/family.js'
import { LinkKinds } from './links/link-kinds.js'
import { linksOf, linkWrits, unlinkWrits } from './links/links.js'
import { MANDATE } from './types/mandate.js'
import type { WritTypeConfig } from './types/writ-type.js'
import { WritTypes } from './types/writ-types.js'
import { editWrit } from './writs/edit.js'
import { postWrit } from './writs/post.js'
import { countWrits, listWrits, resolveWritId } from './writs/query.js'
import { setStatus } from './writs/status.js'
import { transitionWrit } from './writs/transition.js'
import type { WritDoc } from './writs/writ.js'
import { writIds } from './writs/writ-ids.js'

/** The Clerk's part of `guild.json`, under `clerk`. */
export interface ClerkConfig {
  /** The type of a writ that is posted without one. Default: `mandate`. */
  readonly defaultType?: string
  /** Whether a writ may end in success only when everything below it has ended. Default: no. */
  readonly strictCompletion?: boolean
}

/** What the Clerk publishes about itself, for processes that write writs without its plugins. */
export interface PublishedClerk {
  readonly defaultType: string
  readonly strictCompletion: boolean
  readonly types: readonly WritTypeConfig[]
  /** How many watchers run in the transactions that write writs. */
  readonly watchersOfWrits: number
  /** Ids of the plugins that have started. */
  readonly plugins: readonly string[]
}

/** A Clerk, for one guild. */
export function createClerk(): Apparatus {
  let api: ClerkApi | undefined
  return {
    requires: ['stacks'],
    consumes: ['linkKinds'],
    get provides() {
      return api
    },
    supportKit: {
      books: {
        writs: {
          indexes: [
            'phase',
            'type',
            'createdAt',
            'parentId',
            ['phase', 'type'],
            ['phase', 'createdAt'],
            ['parentId', 'phase'],
          ],
        },
        links: { indexes: ['sourceId', 'targetId', 'label', ['sourceId', 'label'], ['targetId', 'label']] },
        log: { indexes: ['at', 'writId'] },
        ...SETTINGS_BOOK,
      },
    },
    start(ctx) {
      const { defaultType, isStrict } = checkedConfig(guild().config<ClerkConfig>('clerk'))
      const stacks = guild().apparatus<StacksApi>('stacks')
      const kinds = new LinkKinds(ctx.kits('linkKinds'))
      const types = new WritTypes()
      types.register(MANDATE)
      const rules = { types, defaultType, isStrict }
      const context = new ClerkContext(stacks, ctx.clock, () => rules)
      const newWritId = writIds(ctx.clock, ctx.random)
      stacks.watch<WritDoc>('clerk', 'writs', familyWatcher(context))
      ctx.on('phase:started', async () => {
        types.close(defaultType)
        const mine: PublishedClerk = {
          defaultType,
          strictCompletion: isStrict,
          types: types.all.map(({ config }) => config),
          watchersOfWrits: stacks.watched('clerk', 'writs'),
          plugins: guild()
            .apparatuses()
            .map(({ id }) => id)
            .sort(),
        }
        // A process without Spider, such as a script that posts a writ, is no measure of what the workers can do.
        await publishSettings(stacks, 'clerk', mine, (known) => isWorker(known) && !isWorker(mine))
      })
      const classification = ({ type, phase }: Pick<WritDoc, 'type' | 'phase'>) =>
        types.machine(type).state(phase).classification
      api = Object.freeze<ClerkApi>({
        post: async (writ) => postWrit(context, newWritId, writ),
        show: async (id) => context.need(stringOption('show(id)', id)),
        resolveId: async (idOrPrefix) => resolveWritId(context, idOrPrefix),
        list: async (listing) => listWrits(context, listing),
        count: async (filter) => countWrits(context, filter),
        transition: async (id, to, fields) => transitionWrit(context, id, to, fields),
        setWritStatus: async (id, pluginId, value) => setStatus(context, id, pluginId, value),
        hasOpenChildren: async (id) => hasOpenChildren(context, stringOption('hasOpenChildren(id)', id)),
        edit: async (change) => editWrit(context, change),
        link: async (sourceId, targetId, label, kind) => linkWrits(context, kinds, sourceId, targetId, label, kind),
        unlink: async (sourceId, targetId, label) => unlinkWrits(context, sourceId, targetId, label),
        links: async (id) => linksOf(context, id),
        listKinds: () => kinds.list(),
        holdParents: (isHeld) => context.holdParents(functionOption('holdParents(isHeld)', isHeld)),
        registerWritType: (config) => types.register(config),
        getWritTypeConfig: (name) => types.machine(name).config,
        isInitial: (writ) => classification(writ) === 'initial',
        isActive: (writ) => classification(writ) === 'active',
        isTerminal: (writ) => classification(writ) === 'terminal',
      })
    },
  }
}

/** Whether it was published by a process that gives writs their rigs. */
export const isWorker = ({ plugins }: PublishedClerk): boolean => plugins.includes('spider')

function checkedConfig(given: ClerkConfig): { readonly defaultType: string; readonly isStrict: boolean } {
  const config = optionsObject('guild.json.clerk', given, ['defaultType', 'strictCompletion'])
  return {
    defaultType: stringOption('guild.json.clerk.defaultType', config.defaultType, MANDATE.name),
    isStrict: booleanOption('guild.json.clerk.strictCompletion', config.strictCompletion, false),
  }
}
