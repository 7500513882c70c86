/**
 * Gives the anchors of one page's headings, as the usual viewers of Markdown make them, so that a link works there and here.
 * @returns {(heading: string) => string} one for each heading, in the order of the page
 */
export function anchors() {
  /** @type {Map<string, number>} */
  const used = new Map()
  return (heading) => {
    const slug = heading
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
      .replaceAll(' ', '-')
    const times = used.get(slug) ?? 0
    used.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  }
}
