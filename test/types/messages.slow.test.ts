import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

const PROGRAM = `
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { createWork, defineContract, defineWork } from 'millrace'
const add = defineWork('add', (i: { a: number }) => i.a)
const w = createWork({ autoStart: false, work: [add] })
void w.enqueue(add({ a: 1 }), { dely: 5 })
void w.add(add({ a: 1 }), { dely: 5 })
void w.add('add', { a: 1 }, { dely: 5 })
void w.enqueue(add({ a: 1 }), { delay: '5' })
void w.handle(add, 5)
void w.add('add', { b: 1 })
void w.enqueue('add', { a: '1' })
void w.add('ad', { a: 1 })
void w.handle('ad', 'x')
defineWork('x', (i: number) => i, { retires: { attempts: 2 } })
const mail = defineContract('mail', schema, { concurrency: 2 })
defineWork(mail, ({ to }) => to, { retry: { attempts: 2 } })
declare const schema: StandardSchemaV1<{ to: string }>
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
  it('names what is wrong, and not what is right beside it', () => {
    const said = compilerOn(PROGRAM)

    const expected: readonly (readonly [line: number, text: string])[] = [
      [6, "Did you mean to write 'delay'?"],
      [7, "Did you mean to write 'delay'?"],
      [8, "Did you mean to write 'delay'?"],
      [9, "Type 'string' is not assignable to type 'number'"],
      [10, "Argument of type 'number' is not assignable to parameter of type 'string'"],
      [11, "'b' does not exist in type '{ a: number; }'"],
      [12, "Type 'string' is not assignable to type 'number'"],
      [13, `Type '"ad"' is not assignable to type '"add"'`],
      [14, `Argument of type '"ad"' is not assignable to parameter of type '"add" | AnyWorkType'`],
      [15, "'retires' does not exist in type"],
      [16, "'concurrency' does not exist in type"],
      [17, "'retry' does not exist in type 'RunOptions<"],
    ]
    for (const [line, text] of expected) expect(said.get(line)).toContain(text)
    expect([...said.keys()].filter((line) => line > 0)).toEqual(expected.map(([line]) => line))
  })
})
