import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

const PROGRAM = `
import { createWork, defineWork } from 'millrace'
const add = defineWork('add', (i: { a: number }) => i.a)
const w = createWork({ autoStart: false, work: [add] })
void w.enqueue(add({ a: 1 }), { dely: 5 })
void w.add(add({ a: 1 }), { dely: 5 })
void w.add('add', { a: 1 }, { dely: 5 })
void w.enqueue(add({ a: 1 }), { delay: '5' })
void w.handle(add, 5)
`

/** What the compiler says about a program, line by line. */
function compilerOn(program: string): ReadonlyMap<number, string> {
  mkdirSync(join(root, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(root, '.cache', 'messages-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'program.ts'), program)
  const paths = { millrace: [join(root, 'src', 'index.ts')] }
  const config = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: { noEmit: true, paths },
    include: ['program.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
    cwd: folder,
  })
  const said = new Map<number, string>()
  let line = 0
  for (const text of stdout.split('\n')) {
    line = Number(/^program\.ts\((\d+),/.exec(text)?.[1] ?? line)
    said.set(line, `${said.get(line) ?? ''}${text}\n`)
  }
  return said
}

describe('the compiler', () => {
  it('names the option that is wrong, not the work that is right', () => {
    const said = compilerOn(PROGRAM)

    for (const line of [5, 6, 7]) expect(said.get(line)).toContain("Did you mean to write 'delay'?")
    expect(said.get(8)).toContain("Type 'string' is not assignable to type 'number'")
    expect(said.get(9)).toContain("Argument of type 'number' is not assignable to parameter of type 'string'")
    expect([...said.keys()].filter((line) => line > 0)).toEqual([5, 6, 7, 8, 9])
  })
})
