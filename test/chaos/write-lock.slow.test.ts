import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { machineNow } from './machine-time.mjs'
import { Timeline } from './timeline.js'
import { watchWriteLock } from './write-lock.js'

// Real time: the lock of a real file is watched from outside.
it('a write lock that is held for long is a fault of all processes, and one that is held for a moment is none', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-lock-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'a.db')
  const holder = new Database(file)
  holder.pragma('journal_mode = wal')
  const timeline = new Timeline()
  const watch = watchWriteLock(file, timeline, 1_600)
  onTestFinished(() => {
    watch.close()
    holder.close()
  })
  const hold = async (ms: number) => {
    holder.exec('begin immediate')
    await sleep(ms)
    holder.exec('rollback')
    await sleep(200)
  }

  await hold(60)
  expect(timeline.count('lock')).toBe(0)
  const before = machineNow()
  await hold(1_000)

  expect(timeline.count('lock')).toBe(1)
  expect(timeline.isDisturbed('any', before + 500, before + 600)).toBe(true)
  expect(timeline.isDisturbed('any', before - 10_000, before - 5_000)).toBe(false)
})
