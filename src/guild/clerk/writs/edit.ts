import { OptionTypeError, optionsObject, stringOption } from '../../../core/options.js'
import type { ClerkContext } from '../context.js'
import { WritSettledError } from '../errors.js'
import { optionalInstant, optionalText } from './post.js'
import type { EditWrit, WritDoc } from './writ.js'

const EDITABLE = ['id', 'title', 'body', 'type', 'codex', 'runAt', 'deadline'] as const

/** Changes the contents of a writ. With its type, its phase becomes the new type's initial one, since that is where it is. */
export async function editWrit(context: ClerkContext, given: EditWrit): Promise<WritDoc> {
  const change = optionsObject<Partial<EditWrit>>('edit()', given, EDITABLE)
  const id = stringOption('edit().id', change.id)
  const title = optionalText('edit().title', change.title)
  const type = optionalText('edit().type', change.type)
  const { body, codex } = change
  if (body !== undefined && typeof body !== 'string') throw new OptionTypeError('edit().body', 'a string', body)
  if (codex !== undefined && typeof codex !== 'string') throw new OptionTypeError('edit().codex', 'a string', codex)
  const instants = { ...instantOf('runAt', change.runAt), ...instantOf('deadline', change.deadline) }
  return context.change(async () => {
    const writ = await context.need(id)
    const isSettled = () => context.types.machine(writ.type).initial !== writ.phase
    if (type !== undefined && isSettled()) throw new WritSettledError(id, 'type', writ.phase)
    if (codex !== undefined && isSettled()) throw new WritSettledError(id, 'codex', writ.phase)
    return context.writs.patch(id, {
      ...(title === undefined ? {} : { title }),
      ...(body === undefined ? {} : { body }),
      ...(type === undefined ? {} : { type, phase: context.types.machine(type).initial }),
      ...(codex === undefined ? {} : { codex: codex === '' ? undefined : codex }),
      ...instants,
      updatedAt: context.now(),
    })
  })
}

/** The field to write: left out when it is not given, removed when it is null. */
function instantOf(name: 'runAt' | 'deadline', value: number | Date | null | undefined) {
  if (value === undefined) return {}
  return { [name]: value === null ? undefined : optionalInstant(`edit().${name}`, value) }
}
