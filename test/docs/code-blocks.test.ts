import { describe, expect, it } from 'vitest'
import { modulesOf } from './code-blocks.js'

const page = (...lines: readonly string[]) => modulesOf('docs/a/b.md', lines.join('\n'))
const code = (module: { readonly text: string } | undefined) => module?.text.split('\n')

describe('the programs of a page', () => {
  it('are its blocks in one, with every line where it is in the page', () => {
    const [module, ...rest] = page('# A', '```ts', 'const a = 1', '```', 'and', '```ts', 'a + 1', '```')
    expect(rest).toEqual([])
    expect(module!.name).toBe('docs-a-b.ts')
    expect(code(module)!.slice(0, 8)).toEqual(['', '', 'const a = 1', '', '', '', 'a + 1', ''])
  })

  it('are apart where a block says so', () => {
    const modules = page('```ts', 'const a = 1', '```', '```ts standalone', 'const a = 2', '```')
    expect(modules.map(({ name }) => name)).toEqual(['docs-a-b.ts', 'docs-a-b-line-5.ts'])
    expect(code(modules[1])![4]).toBe('const a = 2')
    expect(modules[0]!.text).not.toContain('2')
  })

  it('leave out other languages, and what only shows how a block is written', () => {
    expect(page('```sh', 'npm test', '```', '```', 'plain', '```', '````md', '```ts', 'no', '```', '````')).toEqual([])
  })

  it('end: a block that is never closed, or has an unknown word, is a mistake', () => {
    expect(() => page('```ts', 'const a = 1')).toThrow('line 1: this code block is never closed')
    expect(() => page('```ts alone', '', '```')).toThrow('```ts standalone')
  })
})
