import { createContext, runInContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { read } from './pages.js'

/** As much of an element as the search uses. */
class FakeElement {
  hidden = true
  value = ''
  href = ''
  textContent = ''
  dataset = { base: '../' }
  children: FakeElement[] = []
  clicks = 0
  readonly parts = new Map<string, FakeElement>()
  readonly #heard = new Map<string, (event: object) => void>()

  querySelector(selector: string): FakeElement | null {
    return this.parts.get(selector) ?? this.querySelectorAll(selector)[0] ?? null
  }
  querySelectorAll(_: string): FakeElement[] {
    return this.children.flatMap((item) => item.children).filter(({ href }) => href !== '')
  }
  addEventListener(kind: string, hear: (event: object) => void): void {
    this.#heard.set(kind, hear)
  }
  tell(kind: string, event: object = {}): void {
    this.#heard.get(kind)?.({ preventDefault: () => undefined, ...event })
  }
  append(child: FakeElement): void {
    this.children.push(child)
  }
  replaceChildren(): void {
    this.children = []
  }
  focus(): void {}
  click(): void {
    this.clicks += 1
  }
}

function openSearch(index: readonly (readonly [url: string, page: string, heading: string])[]) {
  const [form, input, list, document] = Array.from({ length: 4 }, () => new FakeElement()) as [
    FakeElement,
    FakeElement,
    FakeElement,
    FakeElement,
  ]
  form.parts.set('input', input).set('ol', list)
  document.parts.set('.search', form)
  const world = Object.assign(document, {
    documentElement: document,
    createElement: () => new FakeElement(),
  })
  const context = createContext({ document: world })
  runInContext(`globalThis.SEARCH_INDEX = ${JSON.stringify(index)}`, context)
  runInContext(read('docs/site/search.js'), context)
  const find = (words: string) => {
    input.value = words
    input.tell('input')
    return list.querySelectorAll('a').map(({ href, textContent }) => [href, textContent])
  }
  return { form, list, find }
}

describe('the search of the site', () => {
  const { form, list, find } = openSearch([
    ['guide/work.html#dead-items-and-redrive', 'Work', 'Dead items and redrive'],
    ['recipes/redrive-after-a-fix.html', 'Redrive after a fix', 'Redrive after a fix'],
    ['learn/gates.html', 'Gates', 'Gates'],
  ])

  it('shows itself when its script is there', () => {
    expect(form.hidden).toBe(false)
  })

  it('finds headings that have every word, those that begin with it first, from wherever the page is', () => {
    expect(find('Redrive')).toEqual([
      ['../recipes/redrive-after-a-fix.html', 'Redrive after a fix'],
      ['../guide/work.html#dead-items-and-redrive', 'Dead items and redrive'],
    ])
    expect(find('redrive work')).toEqual([['../guide/work.html#dead-items-and-redrive', 'Dead items and redrive']])
  })

  it('says so when there is nothing, and shows nothing when nothing is asked', () => {
    expect(find('zebra')).toEqual([])
    expect(list.children.map(({ textContent }) => textContent)).toEqual(['No title or heading has these words.'])
    expect(find('  ')).toEqual([])
    expect(list.children).toEqual([])
  })

  it('opens the first on Enter', () => {
    find('gates')
    const [first] = list.querySelectorAll('a')
    form.tell('submit')

    expect(first?.clicks).toBe(1)
  })
})
