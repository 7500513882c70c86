import { AmbiguousIdError } from '../ops/actions/errors.js'
import type { Ops } from '../ops/api.js'
import type { Call } from './command.js'
import { clean } from './terminal/clean.js'

/** The id of the item that was meant by what was typed: an id, or the beginning of one. An unknown one is returned as it is. */
export async function itemIdOf(call: Pick<Call, 'screen' | 'isJson'>, ops: Ops, typed: string): Promise<string> {
  const id = (await ops.findId(typed)) ?? typed
  if (id !== typed && !call.isJson) call.screen.note(`${clean(typed)} is ${clean(id)}.`)
  return id
}

/** The same for a bulk action. Only the latest can be found by their beginning. */
export async function actionIdOf(ops: Ops, typed: string): Promise<string> {
  const ids = (await ops.actions()).map(({ id }) => id)
  if (ids.includes(typed)) return typed
  const [one, ...others] = ids.filter((id) => id.startsWith(typed))
  if (one !== undefined && others.length > 0) throw new AmbiguousIdError('action', typed, [one, ...others])
  return one ?? typed
}
