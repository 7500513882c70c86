import { booleanOption, optionsObject, stringOption } from '../../core/options.js'
import { guild } from '../host/current.js'
import type { Apparatus } from '../host/plugin.js'
import type { StacksApi } from '../stacks/api.js'
import type { ClerkApi } from './api.js'
import { Desk } from './desk.js'
import { editWrit } from './edit.js'
import { familyWatcher } from './family.js'
import { LinkKinds } from './link-kinds.js'
import { linksOf, linkWrits, unlinkWrits } from './links.js'
import { MANDATE } from './mandate.js'
import { postWrit } from './post.js'
import { countWrits, listWrits, resolveWritId } from './query.js'
import { setStatus } from './status.js'
import { transitionWrit } from './transition.js'
import type { WritDoc } from './writ.js'
import { writIds } from './writ-ids.js'
import { WritTypes } from './writ-types.js'

/** The Clerk's part of `guild.json`, under `clerk`. */
export interface ClerkConfig {
  /** The type of a writ that is posted without one. Default: `mandate`. */
  readonly defaultType?: string
  /** Whether a writ may end in success only when everything below it has ended. Default: no. */
  readonly strictCompletion?: boolean
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
      },
    },
    start(ctx) {
      const { defaultType, isStrict } = checkedConfig(guild().config<ClerkConfig>('clerk'))
      const stacks = guild().apparatus<StacksApi>('stacks')
      const kinds = new LinkKinds(ctx.kits('linkKinds'))
      const types = new WritTypes()
      types.register(MANDATE)
      const desk = new Desk(stacks, types, ctx.clock, isStrict)
      const newWritId = writIds(ctx.clock, ctx.random)
      stacks.watch<WritDoc>('clerk', 'writs', familyWatcher(desk))
      ctx.on('phase:started', () => types.close(defaultType))
      const classification = ({ type, phase }: Pick<WritDoc, 'type' | 'phase'>) =>
        types.machine(type).state(phase).classification
      api = Object.freeze<ClerkApi>({
        post: async (writ) => postWrit(desk, newWritId, defaultType, writ),
        show: async (id) => desk.need(stringOption('show(id)', id)),
        resolveId: async (idOrPrefix) => resolveWritId(desk, idOrPrefix),
        list: async (listing) => listWrits(desk, listing),
        count: async (filter) => countWrits(desk, filter),
        transition: async (id, to, fields) => transitionWrit(desk, id, to, fields),
        setWritStatus: async (id, pluginId, value) => setStatus(desk, id, pluginId, value),
        edit: async (change) => editWrit(desk, change),
        link: async (sourceId, targetId, label, kind) => linkWrits(desk, kinds, sourceId, targetId, label, kind),
        unlink: async (sourceId, targetId, label) => unlinkWrits(desk, sourceId, targetId, label),
        links: async (id) => linksOf(desk, id),
        listKinds: () => kinds.list(),
        registerWritType: (config) => types.register(config),
        getWritTypeConfig: (name) => types.machine(name).config,
        isInitial: (writ) => classification(writ) === 'initial',
        isActive: (writ) => classification(writ) === 'active',
        isTerminal: (writ) => classification(writ) === 'terminal',
      })
    },
  }
}

function checkedConfig(given: ClerkConfig): { readonly defaultType: string; readonly isStrict: boolean } {
  const config = optionsObject('guild.json.clerk', given, ['defaultType', 'strictCompletion'])
  return {
    defaultType: stringOption('guild.json.clerk.defaultType', config.defaultType, MANDATE.name),
    isStrict: booleanOption('guild.json.clerk.strictCompletion', config.strictCompletion, false),
  }
}
