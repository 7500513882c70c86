import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memoryBackend, memoryQueue } from '../../../src/backends/memory/index.js'

const CHILD = fileURLToPath(new URL('./push-and-ack.child.ts', import.meta.url))
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-queue-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the child until it has noted so many lines, kills it without warning, and returns all that it noted. */
function killedAfter(lines: number, file: string, mode: 'plain' | 'native'): Promise<string[]> {
  const notes = join(folder, 'notes')
  writeFileSync(notes, '')
  const noted = () => readFileSync(notes, 'utf8').split('\n').slice(0, -1)
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', CHILD, file, notes, mode], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let complaint = ''
    child.stderr.on('data', (data: Buffer) => {
      complaint += data.toString()
    })
    const look = setInterval(() => {
      if (noted().length >= lines) child.kill('SIGKILL')
    }, 5)
    child.on('error', reject)
    child.on('close', (_code, signal) => {
      clearInterval(look)
      if (signal === 'SIGKILL') resolve(noted())
      else reject(new Error(`the child ended by itself: ${complaint}`))
    })
  })
}

const numbers = (said: readonly string[], word: string) =>
  new Set(said.filter((line) => line.startsWith(`${word} `)).map((line) => Number(line.slice(2))))

// S14
describe('a process that is killed while it works on a file queue', () => {
  it.each([50, 700, 3_000])(
    'loses nothing that was accepted and nothing twice, killed after about %i lines',
    async (lines) => {
      const file = join(folder, 'deep/er/q.queue')
      const said = await killedAfter(lines, file, 'plain')
      const errors: unknown[] = []
      const queue = memoryQueue({ file, onError: (error) => errors.push(error) })
      const found = queue.pop(1e6, 60_000).map(({ body }) => (JSON.parse(body) as { n: number }).n)

      expect(errors).toEqual([])
      expect(new Set(found).size).toBe(found.length)
      const present = new Set(found)
      const pushed = numbers(said, 'p')
      const acked = numbers(said, 'a')
      const taken = numbers(said, 't')
      for (const n of pushed) if (!taken.has(n)) expect([n, present.has(n)]).toEqual([n, true])
      for (const n of acked) expect([n, present.has(n)]).toEqual([n, false])
      // At most what was under way when it died: one push that it could not report any more.
      expect(found.filter((n) => !pushed.has(n)).length).toBeLessThanOrEqual(1)
    },
  )

  it('has each native commit on disk as a whole or not at all, over all its queues', async () => {
    const file = join(folder, 'q.queue')
    const said = await killedAfter(200, file, 'native')
    const backend = memoryBackend({ queue: { file } })
    const bodies = [backend.queue, backend.named('bulk')].flatMap((queue) => queue.pop(1e6, 60_000))
    const sizes = new Map<string, number>()
    for (const { body } of bodies) {
      const { groupId } = JSON.parse(body) as { groupId: string }
      sizes.set(groupId, (sizes.get(groupId) ?? 0) + 1)
    }
    const committed = numbers(said, 'p')

    expect([...new Set(sizes.values())]).toEqual([10])
    for (const n of committed) expect(sizes.has(`g${n}`)).toBe(true)
    expect(sizes.size - committed.size).toBeLessThanOrEqual(1)
    await backend.close()
  })
})

describe('the default file system', () => {
  // S15
  it('reopens a journal whose last 7 bytes are missing', () => {
    const file = join(folder, 'q.queue')
    const queue = memoryQueue({ file })
    for (let n = 0; n < 100; n += 1) queue.push(`body ${n}`)
    truncateSync(file, readFileSync(file).length - 7)
    const errors: unknown[] = []
    const again = memoryQueue({ file, onError: (error) => errors.push(error) })

    expect(again.size()).toBe(99)
    expect(errors).toEqual([])
    again.push('after')
    expect(memoryQueue({ file }).size()).toBe(100)
  })

  it('survives a power cut where the options ask for it, and reads text of any script', () => {
    const file = join(folder, 'new/q.queue')
    const queue = memoryQueue({ file, durability: 'power' })
    const texts = ['ascii', 'ü漢字🧵', '\u2028 \u0000 "quoted"\n', '\ud800 lone']
    for (const text of texts) queue.push(text)

    expect(
      memoryQueue({ file })
        .pop(9, 100)
        .map(({ body }) => body),
    ).toEqual(texts)
  })

  it('writes everything anew when the file is deleted while it is open', () => {
    const file = join(folder, 'q.queue')
    const errors: unknown[] = []
    const queue = memoryQueue({ file, onError: (error) => errors.push(error) })
    queue.push('before')
    rmSync(file)
    for (let n = 0; n < 200; n += 1) queue.push(`body ${n}`)

    expect(errors).toMatchObject([{ code: 'QUEUE_FILE_DELETED' }])
    expect(memoryQueue({ file }).size()).toBe(201)
  })

  it('starts empty where another program has put something else, and keeps that file under another name', () => {
    const file = join(folder, 'q.queue')
    writeFileSync(file, 'precious notes')
    const queue = memoryQueue({ file })
    queue.push('a')

    expect(readFileSync(`${file}.damaged`, 'utf8')).toBe('precious notes')
    expect(memoryQueue({ file }).size()).toBe(1)
  })

  it('reports a file that cannot be written, and goes on in memory', () => {
    const errors: unknown[] = []
    writeFileSync(join(folder, 'no-folder'), '')
    const queue = memoryQueue({ file: join(folder, 'no-folder/q.queue'), onError: (error) => errors.push(error) })
    queue.push('a')

    expect(queue.size()).toBe(1)
    // Once when it was opened and could not be read, once for the push.
    expect(errors.length).toBe(2)
  })
})
