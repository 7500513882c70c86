import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readContents } from '../../scripts/lib/docs/contents.mjs'
import { highlight } from '../../scripts/lib/docs/highlight.mjs'
import { repositoryLlmsText, withPageList } from '../../scripts/lib/docs/llms.mjs'
import { renderMarkdown } from '../../scripts/lib/docs/markdown.mjs'
import { references, undocumented } from '../../scripts/lib/docs/reference.mjs'
import { buildSite } from '../../scripts/lib/docs/site.mjs'
import { brokenLinks } from './links.js'
import { pages, read } from './pages.js'

const UP_TO_DATE = 'run `npm run docs` and commit what it changes'

describe('the pages', () => {
  it('link to headings that exist', () => {
    const { targets, links } = linksInPages()
    const broken = links.filter(({ to }) => targets.has(to.split('#')[0]!) && !targets.get(to.split('#')[0]!)!.has(to))

    expect(broken).toEqual([])
  })

  it('have their place in the table of contents, and are all there', () => {
    const { sections } = readContents()

    expect(sections.map(({ title }) => title)).toEqual([
      'Start',
      'Learn',
      'Recipes',
      'Testing',
      'Operating',
      'Reference',
      'Moving',
      'Decisions',
    ])
    expect(sections.filter((section) => section.pages.length === 0)).toEqual([])
  })

  it('cannot be forgotten, named twice, or named without being there', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-contents-'))
    const contents = (...sectionPages: unknown[]) => {
      writeFileSync(
        join(folder, 'site', 'contents.json'),
        JSON.stringify({ title: 'T', summary: 'S', sections: [{ title: 'A', about: 'B', pages: sectionPages }] }),
      )
      return () => readContents(folder)
    }
    try {
      mkdirSync(join(folder, 'site'))
      mkdirSync(join(folder, 'guide'))
      writeFileSync(join(folder, 'guide', 'one.md'), '# One')
      writeFileSync(join(folder, 'guide', 'two.md'), '# `Two`')

      expect(contents('guide/one.md')).toThrow('has no place for docs/guide/two.md')
      expect(contents('guide/one.md', 'guide/one.md', 'guide/*')).toThrow('names docs/guide/one.md twice')
      expect(contents('guide/three.md', 'guide/*')).toThrow('names docs/guide/three.md, which does not exist')
      expect(contents({ page: 'guide/two.md', about: 'x' }, 'guide/*')().sections[0]!.pages).toEqual([
        { path: 'guide/two.md', title: 'Two', about: 'x' },
        { path: 'guide/one.md', title: 'One', about: undefined },
      ])
      expect(contents('guide/*', { page: 'guide/t*', about: 'x' }, 'none/*')().sections[0]!.pages).toEqual([
        { path: 'guide/one.md', title: 'One', about: undefined },
        { path: 'guide/two.md', title: 'Two', about: 'x' },
      ])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('llms.txt and the list in docs/README.md', () => {
  it('are up to date', () => {
    const contents = readContents()

    expect(read('llms.txt') === repositoryLlmsText(contents, references()), UP_TO_DATE).toBe(true)
    expect(read('docs/README.md') === withPageList(read('docs/README.md'), contents), UP_TO_DATE).toBe(true)
  })

  it('say of every page, decisions apart, what it is about', () => {
    const silent = readContents()
      .sections.filter(({ title }) => title !== 'Decisions')
      .flatMap((section) => section.pages.filter(({ about }) => about === undefined))

    expect(silent.map(({ path }) => path)).toEqual([])
  })
})

describe('the reference', () => {
  it('has a word for everything that a door lists', () => {
    const all = references()

    expect(all.flatMap(({ names }) => names).length).toBeGreaterThan(500)
    expect(undocumented(all)).toEqual([])
  })

  it('would list a name without one', () => {
    const [door] = references()
    const silent = { ...door!, about: undefined, names: [{ ...door!.names[0]!, doc: undefined }] }

    expect(undocumented([silent])).toEqual([
      'millrace (a comment at the top of the door)',
      `${silent.names[0]!.name} in ${silent.names[0]!.file}`,
    ])
  })

  it('shows signatures without bodies and private members', () => {
    const names = new Map(references().flatMap((door) => door.names.map((one) => [`${door.name} ${one.name}`, one])))

    expect(names.get('millrace createWork')!.signature).toMatch(
      /^function createWork<const Defs [^{]*\{[^{}]*\},?\n\): WorkSystem<Defs>$/,
    )
    expect(names.get('millrace/testing FakeClock')!.signature).toMatch(/^class FakeClock[\s\S]*advance\(ms: Ms\)/)
    expect(names.get('millrace/testing FakeClock')!.signature).not.toContain('#')
    expect(names.get('millrace RetryOptions')!.kind).toBe('type')
  })
})

describe('the site', () => {
  let files: ReadonlyMap<string, string> = new Map()
  beforeAll(() => {
    files = buildSite()
  }, 120_000)

  it('has every page and every door', () => {
    const contents = readContents()
    const paths = contents.sections.flatMap((section) => section.pages.map(({ path }) => path.replace(/md$/, 'html')))

    expect(paths.filter((path) => !files.has(path))).toEqual([])
    expect(references().filter(({ path }) => !files.has(path.replace(/md$/, 'html')))).toEqual([])
  })

  it('has no link to a page or a heading that is not there', () => {
    expect(brokenLinks(files)).toEqual([])
  })

  it('would tell of one', () => {
    const broken = new Map(files).set(
      'a/b.html',
      '<a href="../index.html#nowhere">x</a><img src="c.svg"><a href="#x">x</a>',
    )

    expect(brokenLinks(broken)).toEqual(['a/b.html: ../index.html#nowhere', 'a/b.html: c.svg', 'a/b.html: #x'])
  })

  it('loads nothing from elsewhere', () => {
    const loaded = [...files].flatMap(([path, text]) =>
      [...text.matchAll(/<(?:script|link|img|iframe)[^>]* (?:src|href)="([^"]+)"/g)]
        .filter(([, url = '']) => /^(?:[a-z]+:)?\/\//i.test(url))
        .map(([tag]) => `${path}: ${tag}`),
    )

    expect(loaded).toEqual([])
    expect(files.get('style.css')).not.toMatch(/@import|url\(/)
    expect(files.get('search.js')).not.toMatch(/fetch|XMLHttpRequest|import\(/)
  })

  it('is readable on a phone, in the dark, and without a script', () => {
    const start = files.get('guide/start.html')!

    expect(start).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
    expect(files.get('style.css')).toContain('prefers-color-scheme: dark')
    // The text and the way to every other page are in the page itself; the search is hidden until its script is there.
    expect(start).toContain('<h1 id="five-minutes">')
    expect(start).toContain('href="../recipes/idempotent-charge.html"')
    expect(start).toMatch(/<form class="search"[^>]* hidden>/)
  })

  it('finds titles, headings and exported names', () => {
    const index = JSON.parse(files.get('search-index.js')!.replace('globalThis.SEARCH_INDEX = ', '')) as string[][]

    expect(index).toContainEqual(['guide/work.html#dead-items-and-redrive', 'Work', 'Dead items and redrive'])
    expect(index).toContainEqual(['learn/states.html', 'States', 'States'])
    expect(index).toContainEqual(['reference/millrace.html#creatework', 'millrace', 'createWork'])
    expect(index.filter(([url = '']) => !files.has(url.split('#')[0]!))).toEqual([])
  })

  it('shows HTML in a page as text', () => {
    const { html } = renderMarkdown(
      '# A <b>\n\n<script>alert(1)</script>\n\n`<i>`\n\n```ts\nconst a = "<u>" // <s>\n```',
      (x) => x,
    )

    expect(html).not.toMatch(/<(?:script|i|b|u|s)>/)
    expect(highlight("const a = '<'", 'ts')).toBe(
      '<span class="keyword">const</span> a = <span class="string">&#39;&lt;&#39;</span>',
    )
  })
})

/** Every link of a page to another page with a heading, as `docs/a.md#heading`, and every heading that there is. */
function linksInPages() {
  const targets = new Map<string, Set<string>>()
  const links: { readonly in: string; readonly to: string }[] = []
  for (const page of pages) {
    const { headings } = renderMarkdown(read(page), (href) => {
      const [file = '', hash] = href.split('#')
      if (hash !== undefined && !/^https?:/.test(href)) {
        links.push({ in: page, to: `${file === '' ? page : posix.join(posix.dirname(page), file)}#${hash}` })
      }
      return href
    })
    targets.set(page, new Set(headings.map(({ id }) => `${page}#${id}`)))
  }
  return { targets, links }
}
