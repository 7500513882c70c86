import { OptionTypeError, stringOption } from '../../../core/options.js'
import type { ClerkContext } from '../context.js'
import { LinkError } from '../errors.js'
import type { LinkDoc, WritLinks } from '../writs/writ.js'
import type { LinkKinds } from './link-kinds.js'
import { canonicalLabel } from './link-label.js'

/** Links two writs, or returns the link that is there, with its kind replaced if another one was given. */
export async function linkWrits(
  context: ClerkContext,
  kinds: LinkKinds,
  sourceId: string,
  targetId: string,
  label: string,
  kind: string | null | undefined,
): Promise<LinkDoc> {
  const id = linkId('link', sourceId, targetId, label)
  if (sourceId === targetId) throw new LinkError(`Writ ${sourceId} cannot be linked to itself.`, { sourceId })
  const wanted = kind === undefined || kind === null ? null : kinds.check(kind)
  return context.change(async () => {
    await context.need(sourceId, 'source')
    await context.need(targetId, 'target')
    const existing = await context.linkBook.get(id)
    if (existing === null) {
      const createdAt = context.now()
      const link: LinkDoc = { id, sourceId, targetId, label: canonicalLabel(label), kind: wanted, createdAt }
      await context.linkBook.put(link)
      return link
    }
    return wanted === null || wanted === existing.kind ? existing : context.linkBook.patch(id, { kind: wanted })
  })
}

/** Removes a link, however its label is spelt. */
export async function unlinkWrits(
  context: ClerkContext,
  sourceId: string,
  targetId: string,
  label: string,
): Promise<void> {
  await context.linkBook.delete(linkId('unlink', sourceId, targetId, label))
}

/** The links from and to a writ, in the order of their making. */
export async function linksOf(context: ClerkContext, id: string): Promise<WritLinks> {
  stringOption('links(id)', id)
  const orderBy = [
    ['createdAt', 'asc'],
    ['id', 'asc'],
  ] as const
  const [outbound, inbound] = await Promise.all([
    context.linkBook.find({ where: [['sourceId', '=', id]], orderBy }),
    context.linkBook.find({ where: [['targetId', '=', id]], orderBy }),
  ])
  return { outbound, inbound }
}

function linkId(method: string, sourceId: string, targetId: string, label: string): string {
  stringOption(`${method}(source)`, sourceId)
  stringOption(`${method}(target)`, targetId)
  if (typeof label !== 'string') throw new OptionTypeError(`${method}(label)`, 'a string', label)
  const canonical = canonicalLabel(label)
  if (canonical === '')
    throw new LinkError(`The label of a link must have at least one letter or digit, got "${label}".`)
  return `${sourceId}:${targetId}:${canonical}`
}
