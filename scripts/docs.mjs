// `npm run docs`: builds the documentation as a site of static files into `site`, and brings llms.txt and the list of pages in
// docs/README.md up to date.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { command } from './lib/command.mjs'
import { readContents } from './lib/docs/contents.mjs'
import { repositoryLlmsText, withPageList } from './lib/docs/llms.mjs'
import { references, undocumented } from './lib/docs/reference.mjs'
import { buildSite } from './lib/docs/site.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { root } from './lib/root.mjs'

await command(() => {
  ensurePackages()
  const contents = readContents()
  const doors = references()
  const list = join(root, 'docs', 'README.md')
  writeFileSync(list, withPageList(readFileSync(list, 'utf8'), contents))
  writeFileSync(join(root, 'llms.txt'), repositoryLlmsText(contents, doors))

  const folder = join(root, 'site')
  rmSync(folder, { recursive: true, force: true })
  const files = buildSite()
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const missing = undocumented(doors)
  for (const name of missing) console.error(`No doc comment: ${name}`)
  console.log(`${files.size} files in site. Open site/index.html.`)
  return missing.length === 0 ? 0 : 1
})
