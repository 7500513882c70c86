import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { temporaryFile } from '../drivers/sqlite/temporary.js'
import { startPostgres, startRedis } from '../servers/index.js'

const program = fileURLToPath(new URL('closing.child.ts', import.meta.url))

/** Rejects when the program ends with anything but 0: one whose last promise never settles ends with 13. */
async function expectClosed(address: string): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', program, address])
  expect(stdout).toBe('[{"queue":"default","type":"noop","counts":{"completed":1}}]\nclosed\n')
}

it('a program that closes its backend as its last step ends well, on SQLite', () =>
  expectClosed(`sqlite:${temporaryFile()}`))

it.each([
  ['Postgres', () => startPostgres({ settings: { fsync: 'off' } })],
  ['Redis', () => startRedis()],
] as const)('a program that closes its backend as its last step ends well, on %s', async (_, start) => {
  const server = await start()
  try {
    await expectClosed(server.url)
  } finally {
    await server.stop()
  }
})
