import { booleanOption, OptionTypeError, optionsObject, stringOption } from '../../../core/options.js'
import type { ClerkContext } from '../context.js'
import { ParentEndedError } from '../errors.js'
import type { PostWrit, WritDoc } from './writ.js'

/** An id that exists already must never replace the writ that has it. */
const IF_ABSENT = { ifRev: null } as const

/** Makes a writ. */
export async function postWrit(
  context: ClerkContext,
  newWritId: () => string,
  defaultType: string,
  given: PostWrit,
): Promise<WritDoc> {
  const { title, body, type, codex, draft, parentId } = checkedPost(given)
  const machine = context.types.machine(type ?? defaultType)
  const createdAt = context.now()
  const writ: WritDoc = {
    id: newWritId(),
    type: machine.config.name,
    phase: draft ? machine.initial : machine.postTo,
    title,
    body,
    ...(codex === undefined ? {} : { codex }),
    createdAt,
    updatedAt: createdAt,
  }
  if (parentId === undefined) {
    await context.writs.put(writ, IF_ABSENT)
    return writ
  }
  return context.change(async () => {
    const parent = await context.need(parentId, 'parent')
    if (context.types.machine(parent.type).isTerminal(parent.phase)) throw new ParentEndedError(parentId, parent.phase)
    const inherited = codex ?? parent.codex
    const child: WritDoc = { ...writ, parentId, ...(inherited === undefined ? {} : { codex: inherited }) }
    await context.touch(parent)
    await context.writs.put(child, IF_ABSENT)
    return child
  })
}

function checkedPost(given: PostWrit) {
  const names = ['title', 'body', 'type', 'codex', 'draft', 'parentId'] as const
  const post = optionsObject<Partial<PostWrit>>('post()', given, names)
  if (typeof post.body !== 'string') throw new OptionTypeError('post().body', 'a string', post.body)
  return {
    title: stringOption('post().title', post.title),
    body: post.body,
    type: optionalText('post().type', post.type),
    codex: optionalText('post().codex', post.codex),
    draft: booleanOption('post().draft', post.draft, false),
    parentId: optionalText('post().parentId', post.parentId),
  }
}

/** A non-empty string, or nothing. */
export function optionalText(path: string, value: unknown): string | undefined {
  return value === undefined ? undefined : stringOption(path, value)
}
