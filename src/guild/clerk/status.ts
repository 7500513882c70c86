import { OptionTypeError, stringOption } from '../../core/options.js'
import type { Desk } from './desk.js'
import type { WritDoc } from './writ.js'

/** Replaces the slot of one plugin and keeps all others. */
export async function setStatus(desk: Desk, id: string, pluginId: string, value: unknown): Promise<WritDoc> {
  stringOption('setWritStatus(id)', id)
  stringOption('setWritStatus(pluginId)', pluginId)
  if (value === undefined)
    throw new OptionTypeError('setWritStatus(value)', 'a value; null to leave the slot empty', value)
  return desk.change(async () => {
    const { status } = await desk.need(id)
    return desk.writs.patch(id, { status: { ...status, [pluginId]: value }, updatedAt: desk.now() })
  })
}
