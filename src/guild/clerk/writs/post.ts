import { defined } from '../../../core/defined.js'
import { booleanOption, OptionError, OptionTypeError, optionsObject, stringOption } from '../../../core/options.js'
import type { ClerkContext } from '../context.js'
import { ParentEndedError } from '../errors.js'
import type { Machine } from '../types/state-machine.js'
import type { PostWrit, WritDoc } from './writ.js'

/** An id that exists already must never replace the writ that has it. */
const IF_ABSENT = { ifRev: null } as const

/** Makes a writ, and its children with it. */
export async function postWrit(context: ClerkContext, newWritId: () => string, given: PostWrit): Promise<WritDoc> {
  // All of the family is checked before any of it is written.
  const post = checkedPost('post()', given, (type) => context.types.machine(type ?? context.defaultType))
  const put = async (one: CheckedPost, parent: WritDoc | undefined): Promise<WritDoc> => {
    const writ = writOf(one, newWritId(), context.now(), parent)
    await context.writs.put(writ, IF_ABSENT)
    for (const child of one.children) await put(child, writ)
    return writ
  }
  const { parentId } = post
  if (parentId === undefined)
    return post.children.length === 0 ? put(post, undefined) : context.change(() => put(post, undefined))
  return context.change(async () => {
    const parent = await context.need(parentId, 'parent')
    if (context.types.machine(parent.type).isTerminal(parent.phase)) throw new ParentEndedError(parentId, parent.phase)
    await context.touch(parent)
    return put(post, parent)
  })
}

function writOf(
  { machine, draft, title, body, codex: own, runAt, deadline }: CheckedPost,
  id: string,
  createdAt: string,
  parent: WritDoc | undefined,
): WritDoc {
  const codex = own ?? parent?.codex
  return {
    id,
    type: machine.config.name,
    phase: draft ? machine.initial : machine.postTo,
    title,
    body,
    ...defined({ codex, parentId: parent?.id, runAt, deadline }),
    createdAt,
    updatedAt: createdAt,
  }
}

interface CheckedPost {
  readonly title: string
  readonly body: string
  readonly machine: Machine
  readonly codex: string | undefined
  readonly draft: boolean
  readonly parentId: string | undefined
  readonly runAt: string | undefined
  readonly deadline: string | undefined
  readonly children: readonly CheckedPost[]
}

function checkedPost(path: string, given: PostWrit, machineOf: (type: string | undefined) => Machine): CheckedPost {
  const names = ['title', 'body', 'type', 'codex', 'draft', 'parentId', 'runAt', 'deadline', 'children'] as const
  const post = optionsObject<Partial<PostWrit>>(path, given, names)
  if (typeof post.body !== 'string') throw new OptionTypeError(`${path}.body`, 'a string', post.body)
  const { children = [] } = post
  if (!Array.isArray(children)) throw new OptionTypeError(`${path}.children`, 'a list of writs', children)
  return {
    title: stringOption(`${path}.title`, post.title),
    body: post.body,
    machine: machineOf(optionalText(`${path}.type`, post.type)),
    codex: optionalText(`${path}.codex`, post.codex),
    draft: booleanOption(`${path}.draft`, post.draft, false),
    parentId: optionalText(`${path}.parentId`, post.parentId),
    runAt: optionalInstant(`${path}.runAt`, post.runAt),
    deadline: optionalInstant(`${path}.deadline`, post.deadline),
    children: children.map((child: PostWrit, at) => {
      const childPath = `${path}.children[${at}]`
      const checked = checkedPost(childPath, child, machineOf)
      if (checked.parentId !== undefined)
        throw new OptionError(`${childPath}.parentId`, 'left out: its parent is the writ around it', checked.parentId)
      return checked
    }),
  }
}

/** Epoch ms or a `Date`, as documents write it; or nothing. */
export function optionalInstant(path: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  const date = value instanceof Date ? value : new Date(typeof value === 'number' ? value : Number.NaN)
  if (Number.isNaN(date.getTime())) throw new OptionTypeError(path, 'epoch ms or a valid Date', value)
  return date.toISOString()
}

/** A non-empty string, or nothing. */
export function optionalText(path: string, value: unknown): string | undefined {
  return value === undefined ? undefined : stringOption(path, value)
}
