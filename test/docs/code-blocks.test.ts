import { describe, expect, it } from 'vitest'
import { commandsOf, modulesOf, runsOf } from './code-blocks.js'

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

describe('the programs that are run', () => {
  const text = ['# A', '```ts run', 'console.log(1)', '```', 'It prints', '```text', '1', '```'].join('\n')

  it('come with what they print, and are compiled, too', () => {
    const [run] = runsOf('docs/a.md', text)
    expect(run).toMatchObject({ name: 'docs-a-line-3.ts', at: 'docs/a.md:3', output: '1' })
    expect(modulesOf('docs/a.md', text).map(({ name }) => name)).toEqual(['docs-a-line-3.ts'])
  })

  it('are a mistake when nothing says what they print', () => {
    expect(() => runsOf('docs/a.md', '```ts run\n\n```\n```sh\nls\n```')).toThrow('line 1: a block that is run')
  })

  it('are all of which a page says what they print', () => {
    expect(() => runsOf('docs/a.md', text.replace('ts run', 'ts standalone'))).toThrow('line 2: the page says what')
    expect(runsOf('docs/a.md', text.replace('ts run', 'ts').replace('It prints', 'The log says'))).toEqual([])
  })
})

describe('the commands of a page', () => {
  it('are the lines of its sh blocks, continued ones as one', () => {
    expect(commandsOf('a.md', '```sh\nnpm ci\n\nnpx millrace list \\\n  --json\n```\n```text\nno\n```')).toEqual([
      { at: 'a.md:2', command: 'npm ci' },
      { at: 'a.md:4', command: 'npx millrace list --json' },
    ])
  })
})
