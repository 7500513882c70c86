import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresStacks, type StacksBackend, sqliteStacks } from 'millrace/guild/stacks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../servers/index.js'
import { failTwice } from '../spider/processes/failing-guild.mjs'

/** Steps from the failure of the engine to the end of the retry; killed-anywhere.slow.test.ts has every one, with less of a kill. */
const STEPS = [
  'before the commit of open→stuck',
  'after the commit of open→stuck',
  'with the event read and not handled',
  'before the commit of stuck→open',
  'after the commit of stuck→open',
  'after the decision to requeue',
  'with the event handled and its progress not stored',
  'with its progress stored',
]

let folder: string
let server: Awaited<ReturnType<typeof startPostgres>> | undefined
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-retry-killed-'))
  // What a killed process had committed is in the server; that one goes on.
  server = await startPostgres({ settings: { fsync: 'off' } })
})
afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Place {
  readonly name: string
  address(n: number): string
  backend(n: number): StacksBackend
}

const PLACES: readonly Place[] = [
  {
    name: 'SQLite',
    address: (n) => join(folder, `${n}.sqlite`),
    backend: (n) => sqliteStacks({ file: join(folder, `${n}.sqlite`) }),
  },
  {
    name: 'PostgreSQL',
    address: (n) => `${server?.url}#killed_${n}`,
    backend: (n) => postgresStacks({ connectionString: server?.url ?? '', schema: `killed_${n}`, maxConnections: 4 }),
  },
]

/** How a process ended that is killed at that step. */
function killed(address: string, step: string): Promise<{ signal: string | null; errors: string }> {
  const child = spawn(process.execPath, ['test/guild/spider/processes/victim.mjs', address, step], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += String(chunk)
  })
  return new Promise((resolve) => child.once('close', (_, signal) => resolve({ signal, errors })))
}

// Most of it is the start of a process and the wait for a lease: they do that side by side. The one that comes after is this process.
describe.concurrent.each(PLACES)('on $name', ({ address, backend }) => {
  it.each(STEPS.map((step, n) => [step, n] as const))(
    // 43
    'killed %s, the retry still happens, once',
    async (step, n) => {
      expect(await killed(address(n), step)).toEqual({ signal: 'SIGKILL', errors: '' })
      expect(await failTwice(backend(n))).toEqual({ phase: 'stuck', rigs: ['stuck', 'stuck'] })
    },
  )
})
