import { optionsObject } from '../../core/options.js'
import { guild } from '../host/current.js'
import type { Apparatus } from '../host/plugin.js'
import { engineCatalogue, type FabricatorApi } from './registry.js'

/** A Fabricator, for one guild: it reads every `engines` contribution when it starts. */
export function createFabricator(): Apparatus {
  let api: FabricatorApi | undefined
  return {
    consumes: ['engines'],
    get provides() {
      return api
    },
    start(ctx) {
      optionsObject('guild.json.fabricator', guild().config<object>('fabricator'), [])
      api = engineCatalogue(ctx.kits('engines'))
    },
  }
}
