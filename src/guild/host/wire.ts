import { contributionKeys, type Kit, type KitEntry, type LoadedApparatus, type LoadedKit } from './plugin.js'

/** All contributions in one list: those of kits in load order, then those of apparatuses in start order. */
export function kitEntries(kits: readonly LoadedKit[], inStartOrder: readonly LoadedApparatus[]): readonly KitEntry[] {
  return [
    ...kits.flatMap(({ id, packageName, kit }) => entriesOf(id, packageName, kit)),
    ...inStartOrder.flatMap(({ id, packageName, apparatus }) => entriesOf(id, packageName, apparatus.supportKit ?? {})),
  ]
}

function entriesOf(pluginId: string, packageName: string, kit: Kit): KitEntry[] {
  return contributionKeys(kit).map((type) => Object.freeze({ pluginId, packageName, type, value: kit[type] }))
}
