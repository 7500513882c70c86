import { OptionTypeError, stringOption } from '../../../core/options.js'
import type { ClerkContext } from '../context.js'
import type { WritDoc } from './writ.js'

/** Replaces the slot of one plugin and keeps all others. */
export async function setStatus(context: ClerkContext, id: string, pluginId: string, value: unknown): Promise<WritDoc> {
  stringOption('setWritStatus(id)', id)
  stringOption('setWritStatus(pluginId)', pluginId)
  if (value === undefined)
    throw new OptionTypeError('setWritStatus(value)', 'a value; null to leave the slot empty', value)
  return context.change(async () => {
    const { status } = await context.need(id)
    return context.writs.patch(id, { status: { ...status, [pluginId]: value }, updatedAt: context.now() })
  })
}
