import { buildFolder } from '../../core/process/own-module.js'
import { type Script, scriptFrom } from '../../drivers/redis/index.js'

const FOLDER = new URL('source/redis/lua/', buildFolder)

type ScriptName = 'apply' | 'claim' | 'leave' | 'letters' | 'open' | 'publish' | 'report' | 'seek'

const made = new Map<ScriptName, Script>()

/** A script of streams. It is read when it is first needed. */
export function script(name: ScriptName): Script {
  let found = made.get(name)
  if (found === undefined) {
    found = scriptFrom(FOLDER, `stream ${name}`, ['head', name])
    made.set(name, found)
  }
  return found
}
