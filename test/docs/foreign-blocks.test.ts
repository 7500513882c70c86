import { parseSync } from 'oxc-parser'
import { describe, expect, it } from 'vitest'
import { pages, read } from './pages.js'

/** Code of other libraries, for comparison. They are not installed here, so that it is read and not compiled. */
const blocks = pages.flatMap((page) =>
  [...read(page).matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => ({ page, code })),
)

describe('code of other libraries in the docs', () => {
  it('is there', () => {
    expect(blocks.length).toBeGreaterThan(0)
  })

  it.each(blocks)('can be read: $page', ({ page, code }) => {
    const { errors } = parseSync(`${page}.mjs`, code)
    expect(errors.map(({ message }) => message)).toEqual([])
  })
})
