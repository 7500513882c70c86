import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { enqueue, item, times } from '../settlements.js'
import { sqliteStore } from './store.js'

const run = promisify(execFile)
const program = fileURLToPath(new URL('drain.ts', import.meta.url))

describe('three processes on one SQLite file', () => {
  it('share the items out without overlap, and close every group once', async () => {
    const store = await sqliteStore()
    const ledger = await store.open()
    const roots = times(300, (i) => `r${i}`)
    await ledger.commit(roots.map((id) => enqueue(item(id))))
    await ledger.commit(times(60, (i) => enqueue(item(`s${i}`, { groupId: `shared${i % 3}`, parent: 'none' }))))

    const said = await Promise.all(
      ['w1', 'w2', 'w3'].map((worker) => run(process.execPath, ['--import', 'tsx', program, store.file, worker])),
    )

    const reports = said.map(({ stdout }) => JSON.parse(stdout) as { done: string[]; closed: string[] })
    const done = reports.flatMap((report) => report.done)
    const closed = reports.flatMap((report) => report.closed)
    expect(done.length).toBe(3 * 300 + 60)
    expect(new Set(done).size).toBe(done.length)
    expect(closed.toSorted()).toEqual([...roots, 'shared0', 'shared1', 'shared2'].toSorted())
    expect((await ledger.groups(['r7', 'shared1'])).map((group) => [group?.open, group?.version])).toEqual([
      [0, 3],
      [0, 20],
    ])
    await ledger.close()
    await store.close()
  })
})
