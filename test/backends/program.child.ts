// A small program on one backend. It says what it did line by line: its warnings, and that it has come to its end.
import { writeSync } from 'node:fs'
import { postgresBackend } from '../../src/backends/postgres/index.js'
import { redisBackend } from '../../src/backends/redis/index.js'
import { sqliteBackend } from '../../src/backends/sqlite/index.js'
import { createWork, defineWork, memoryBackend } from '../../src/index.js'

const [, , kind = '', address = '', story = '', count = '0'] = process.argv
const say = (what: object): void => void writeSync(1, `${JSON.stringify(what)}\n`)
process.on('warning', ({ message, ...warning }) => {
  say({ warning: (warning as { code?: string }).code ?? warning.name, message })
})

const backends = {
  memory: () => memoryBackend({ queue: { file: address } }),
  sqlite: () => sqliteBackend({ file: address }),
  postgres: () => postgresBackend({ connectionString: address }),
  redis: () => redisBackend({ url: address }),
  cluster: () => redisBackend({ cluster: { nodes: address.split(',') } }),
}
const backend = backends[kind as keyof typeof backends]()
const greet = defineWork('greet', (_: number, ctx) => ctx.void())
const isWorking = story.includes('work')
const isIdle = story.includes('idle')
const alive = story.includes('alive: false') ? { keepAlive: false } : {}
const work = createWork({ backend, work: [greet], autoStart: isWorking || isIdle, ...alive })

if (story.includes('before exit')) process.once('beforeExit', () => void work.stop())
if (isWorking) await work.enqueue(greet(0)).result()
for (let i = 0; i < Number(count); i += 1) void work.enqueue(greet(i), { delay: 3_600_000 })
if (story.includes('twice')) {
  // Long enough for the first to be said.
  await new Promise((resolve) => setTimeout(resolve, 500))
  for (let i = 0; i < 100; i += 1) void work.enqueue(greet(i))
  await new Promise((resolve) => setTimeout(resolve, 500))
}
if (story.includes('stop')) await work.stop()
if (story.includes('close')) await backend.close()
say({ end: true })
if (story.includes('process.exit')) process.exit()
