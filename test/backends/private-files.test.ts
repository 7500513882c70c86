import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memoryQueue } from '../../src/backends/memory/index.js'
import { sqliteBackend } from '../../src/backends/sqlite/index.js'

let dir: string
let umask: number
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'millrace-files-'))
  // The widest there is: what is private is so by our own doing.
  umask = process.umask(0)
})
afterEach(() => {
  process.umask(umask)
  rmSync(dir, { recursive: true, force: true })
})

const modes = () => new Set(readdirSync(dir).map((name) => statSync(join(dir, name)).mode & 0o777))

describe('the files of a backend', () => {
  it('are readable by their owner only: SQLite, with its log', async () => {
    const backend = sqliteBackend({ file: join(dir, 'work.db') })
    await backend.store.set('a', 'b')
    expect(readdirSync(dir).length).toBeGreaterThan(1)
    expect(modes()).toEqual(new Set([0o600]))
    await backend.close()
  })

  it('are readable by their owner only: the queue, also after it was rewritten', () => {
    const queue = memoryQueue({ file: join(dir, 'work.queue') })
    for (let i = 0; i < 2_000; i += 1) {
      queue.push('x'.repeat(200))
      queue.ack(queue.pop(1, 1_000)[0]!)
    }
    expect(modes()).toEqual(new Set([0o600]))
  })

  it('keep permissions that were set by hand', async () => {
    const [db, queued] = [join(dir, 'work.db'), join(dir, 'work.queue')]
    for (const file of [db, queued]) {
      writeFileSync(file, '')
      chmodSync(file, 0o640)
    }
    const backend = sqliteBackend({ file: db })
    await backend.store.set('a', 'b')
    const queue = memoryQueue({ file: queued })
    for (let i = 0; i < 2_000; i += 1) {
      queue.push('x'.repeat(200))
      queue.ack(queue.pop(1, 1_000)[0]!)
    }
    expect(modes()).toEqual(new Set([0o640]))
    await backend.close()
  })
})
