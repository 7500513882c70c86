import { buildFolder } from '../../core/process/own-module.js'
import { type Script, scriptFrom } from '../../drivers/redis/index.js'

/** The scripts, each with the files it is put together from. They are read when they are first needed. */
const FILES = Object.freeze({
  claim: ['head', 'notify', 'records', 'groups', 'gates', 'retention', 'messages', 'dead-letters', 'claim'],
  commit: ['head', 'notify', 'records', 'groups', 'gates', 'retention', 'commit'],
  'light-claim': ['head', 'light-claim'],
  'light-enqueue': ['head', 'light-enqueue'],
  'light-complete': ['head', 'light-complete'],
  lease: ['head', 'notify', 'records', 'groups', 'lease'],
  leave: ['head', 'leave'],
  promote: ['head', 'notify', 'records', 'groups', 'gates', 'retention', 'promote'],
  read: ['head', 'notify', 'records', 'groups', 'gates', 'view', 'read'],
  'groups-read': ['head', 'notify', 'records', 'groups', 'groups-read'],
  watch: ['head', 'notify', 'records', 'groups', 'gates', 'watch'],
  list: ['head', 'notify', 'records', 'groups', 'gates', 'view', 'query', 'list'],
  count: ['head', 'notify', 'records', 'groups', 'gates', 'query', 'count'],
  cards: ['head', 'notify', 'records', 'cards'],
  throughput: ['head', 'notify', 'records', 'throughput'],
  failures: ['head', 'notify', 'records', 'failures'],
  'stuck-items': ['head', 'notify', 'records', 'groups', 'gates', 'view', 'stuck-items'],
  facts: ['head', 'records', 'facts'],
  ids: ['head', 'records', 'ids'],
  mode: ['head', 'mode'],
  push: ['head', 'notify', 'messages', 'push'],
  pop: ['head', 'notify', 'messages', 'pop'],
  'settle-messages': ['head', 'notify', 'messages', 'settle-messages'],
  sink: ['head', 'notify', 'messages', 'dead-letters', 'sink'],
  store: ['head', 'store'],
})

export type ScriptName = keyof typeof FILES

const FOLDER = new URL('backends/redis/lua/', buildFolder)
const made = new Map<ScriptName, Script>()

export function script(name: ScriptName): Script {
  let found = made.get(name)
  if (found === undefined) {
    found = scriptFrom(FOLDER, name, FILES[name])
    made.set(name, found)
  }
  return found
}
