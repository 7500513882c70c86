import { type Script, scriptFrom } from '../../drivers/redis/index.js'

/** The scripts, each with the files it is put together from. They are read when they are first needed. */
const FILES = Object.freeze({
  claim: ['head', 'signals', 'records', 'groups', 'gates', 'upkeep', 'messages', 'claim'],
  commit: ['head', 'signals', 'records', 'groups', 'gates', 'upkeep', 'commit'],
  extend: ['head', 'signals', 'records', 'extend'],
  leave: ['head', 'leave'],
  promote: ['head', 'signals', 'records', 'groups', 'gates', 'upkeep', 'promote'],
  read: ['head', 'signals', 'records', 'groups', 'gates', 'view', 'read'],
  'groups-read': ['head', 'signals', 'records', 'groups', 'groups-read'],
  watch: ['head', 'signals', 'records', 'groups', 'gates', 'watch'],
  list: ['head', 'signals', 'records', 'groups', 'gates', 'view', 'query', 'list'],
  count: ['head', 'signals', 'records', 'groups', 'gates', 'query', 'count'],
  cards: ['head', 'signals', 'records', 'cards'],
  flow: ['head', 'signals', 'records', 'flow'],
  failures: ['head', 'signals', 'records', 'failures'],
  strays: ['head', 'signals', 'records', 'groups', 'gates', 'view', 'strays'],
  upgrade: ['head', 'signals', 'records', 'upgrade'],
  facts: ['head', 'facts'],
  mode: ['head', 'mode'],
  push: ['head', 'signals', 'messages', 'push'],
  pop: ['head', 'signals', 'messages', 'pop'],
  'settle-messages': ['head', 'signals', 'messages', 'settle-messages'],
  sink: ['head', 'sink'],
  store: ['head', 'store'],
})

export type ScriptName = keyof typeof FILES

const FOLDER = new URL('./lua/', import.meta.url)
const made = new Map<ScriptName, Script>()

export function script(name: ScriptName): Script {
  let found = made.get(name)
  if (found === undefined) {
    found = scriptFrom(FOLDER, name, FILES[name])
    made.set(name, found)
  }
  return found
}
