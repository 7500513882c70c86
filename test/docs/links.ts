import { posix } from 'node:path'

/** Links of a site, given as what stands in which file, that lead to no file of it or to no element of that file. */
export function brokenLinks(files: ReadonlyMap<string, string>): readonly string[] {
  const ids = new Map<string, ReadonlySet<string>>()
  const idsIn = (path: string) => {
    let found = ids.get(path)
    if (found === undefined) {
      found = new Set([...(files.get(path) ?? '').matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id))
      ids.set(path, found)
    }
    return found
  }
  return [...files].flatMap(([path, text]) => {
    if (!path.endsWith('.html')) return []
    const hrefs = [...text.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, href = '']) => href.replaceAll('&amp;', '&'))
    return [...new Set(hrefs)]
      .filter((href) => !/^(?:https?:|mailto:|data:)/.test(href))
      .filter((href) => {
        const [file = '', hash] = href.split('#')
        const to = file === '' ? path : posix.join(posix.dirname(path), file)
        return !files.has(to) || (hash !== undefined && !idsIn(to).has(hash))
      })
      .map((href) => `${path}: ${href}`)
  })
}
