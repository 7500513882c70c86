import { OptionError, OptionTypeError, stringOption } from '../../../core/options.js'
import { isObject } from '../../../core/text/safe-read.js'
import type { ClerkContext } from '../context.js'
import type { TransitionFields, WritDoc } from './writ.js'

/** Fields that only the Clerk writes; a caller that passes a whole writ means the others. */
const MANAGED: readonly string[] = ['id', 'status', 'createdAt', 'updatedAt', 'resolvedAt', 'parentId', 'phase']

/** Brings a writ to another phase: it is read, checked and written in one transaction. */
export async function transitionWrit(
  context: ClerkContext,
  id: string,
  to: string,
  given: TransitionFields = {},
): Promise<WritDoc> {
  stringOption('transition(id)', id)
  stringOption('transition(to)', to)
  const fields = checkedFields(given)
  return context.change(async () => context.step(await context.need(id), to, fields))
}

function checkedFields(given: TransitionFields): Readonly<Record<string, unknown>> {
  if (!isObject(given) || Array.isArray(given)) throw new OptionTypeError('transition(fields)', 'an object', given)
  const { phase, type, resolution } = given
  if (phase !== undefined && phase !== null && phase !== '') {
    throw new OptionError('transition(fields).phase', 'left out: the phase is the second argument', phase)
  }
  if (type !== undefined) throw new OptionError('transition(fields).type', 'left out: use edit() to change it', type)
  if (resolution !== undefined && typeof resolution !== 'string') {
    throw new OptionTypeError('transition(fields).resolution', 'a string', resolution)
  }
  for (const name of ['title', 'body', 'codex', 'runAt', 'deadline']) {
    const value = given[name]
    if (value !== undefined && typeof value !== 'string') {
      throw new OptionTypeError(`transition(fields).${name}`, 'a string', value)
    }
  }
  // A field given as undefined says nothing; written, it would remove what is there.
  return Object.fromEntries(
    Object.entries(given).filter(([name, value]) => value !== undefined && !MANAGED.includes(name)),
  )
}
