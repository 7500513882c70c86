import { OptionTypeError, stringOption } from '../../core/options.js'
import type { Desk } from './desk.js'
import { LinkError } from './errors.js'
import type { LinkKinds } from './link-kinds.js'
import { canonicalLabel } from './link-label.js'
import type { LinkDoc, WritLinks } from './writ.js'

/** Links two writs, or returns the link that is there, with its kind replaced if another one was given. */
export async function linkWrits(
  desk: Desk,
  kinds: LinkKinds,
  sourceId: string,
  targetId: string,
  label: string,
  kind: string | null | undefined,
): Promise<LinkDoc> {
  const id = linkId('link', sourceId, targetId, label)
  if (sourceId === targetId) throw new LinkError(`Writ ${sourceId} cannot be linked to itself.`, { sourceId })
  const wanted = kind === undefined || kind === null ? null : kinds.check(kind)
  return desk.change(async () => {
    await desk.need(sourceId, 'source')
    await desk.need(targetId, 'target')
    const existing = await desk.linkBook.get(id)
    if (existing === null) {
      const createdAt = desk.now()
      const link: LinkDoc = { id, sourceId, targetId, label: canonicalLabel(label), kind: wanted, createdAt }
      await desk.linkBook.put(link)
      return link
    }
    return wanted === null || wanted === existing.kind ? existing : desk.linkBook.patch(id, { kind: wanted })
  })
}

/** Removes a link, however its label is spelt. */
export async function unlinkWrits(desk: Desk, sourceId: string, targetId: string, label: string): Promise<void> {
  await desk.linkBook.delete(linkId('unlink', sourceId, targetId, label))
}

/** The links from and to a writ, in the order of their making. */
export async function linksOf(desk: Desk, id: string): Promise<WritLinks> {
  stringOption('links(id)', id)
  const orderBy = [
    ['createdAt', 'asc'],
    ['id', 'asc'],
  ] as const
  const [outbound, inbound] = await Promise.all([
    desk.linkBook.find({ where: [['sourceId', '=', id]], orderBy }),
    desk.linkBook.find({ where: [['targetId', '=', id]], orderBy }),
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
