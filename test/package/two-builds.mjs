// One program with both builds of the installed package. What one makes or sets, the other knows. Exits with 1 where that is not so.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as esm from 'millrace'
import * as esmGuild from 'millrace/guild'
import * as esmSource from 'millrace/source'
import { Harness } from 'millrace/testing'

const require = createRequire(import.meta.url)
/** @type {typeof import('millrace')} */
const cjs = require('millrace')
/** @type {typeof import('millrace/guild')} */
const cjsGuild = require('millrace/guild')
/** @type {typeof import('millrace/source')} */
const cjsSource = require('millrace/source')

const folder = mkdtempSync(join(tmpdir(), 'millrace-two-builds-'))

assert.notEqual(esm.createWork, cjs.createWork, 'these are two builds')

await errors()
await work()
await lentPlaces()
await settings()
await streams()
await guilds()
rmSync(folder, { recursive: true })

async function errors() {
  assert.ok(new esm.PoisonError('no') instanceof cjs.PoisonError)
  assert.ok(new cjs.NonRetryableError('no') instanceof esm.PoisonError)
  assert.ok(new cjs.RetryAfterError(5) instanceof esm.MillraceError)
  assert.ok(!(new cjs.RetryAfterError(5) instanceof esm.PoisonError))
  class BadOrder extends cjs.PoisonError {
    /** @override */
    code = 'BAD_ORDER'
  }
  assert.equal(esm.classify(new BadOrder('no')).class, 'poison')
  assert.ok(esm.isPoison(new BadOrder('no')))
  assert.ok(esm.isRetryable(new cjs.RetryableError('later')))
  assert.equal(esm.classify(new cjs.WorkDelayError({ delay: 5 })).rule, 'deferred')
}

/** Work of one build in a system of the other, on a backend of the first. */
async function work() {
  /** @type {number[]} */
  const sums = []
  const add = cjs.defineWork('add', (/** @type {{ a: number, b: number }} */ { a, b }) => {
    sums.push(a + b)
    return a + b
  })
  const fails = cjs.defineWork('fails', () => {
    throw new cjs.PoisonError('never')
  })
  const chain = esm.defineWork('chain', (/** @type {number} */ a, ctx) =>
    ctx.queue([add({ a, b: 10 })]).next(([sum]) => add({ a: sum ?? 0, b: 100 })),
  )
  const backend = cjs.memoryBackend()
  const system = esm.createWork({ work: [fails, chain], backend })
  assert.deepEqual(system.capabilities, esm.createWork({ autoStart: false }).capabilities)
  // It was never registered here: the work brings its definition along.
  assert.equal(await system.enqueue(add({ a: 1, b: 2 })).result(), 3)
  await assert.rejects(system.enqueue(fails(undefined)).result(), (error) => {
    assert.ok(error instanceof cjs.WorkFailedError && error instanceof esm.WorkFailedError)
    assert.equal(error.class, 'poison')
    return true
  })
  await system.enqueue(chain(1)).group()
  assert.deepEqual(sums, [3, 11, 111])
  await system.stop()
}

/** A parent that awaits its child, through a system of the other build, and has the only place. */
async function lentPlaces() {
  const backend = esm.memoryBackend()
  const child = cjs.defineWork('child', () => 'done')
  const producer = cjs.createWork({ backend, work: [child], autoStart: false })
  const parent = esm.defineWork('parent', () => producer.enqueue(child(undefined)).result())
  const system = esm.createWork({ backend, work: [parent, child], concurrency: 1 })
  assert.equal(await system.enqueue(parent(undefined)).result(), 'done')
  await system.stop()
  await producer.stop()
}

async function settings() {
  cjs.setDefaultRetryOptions({ attempts: 7 })
  assert.equal(esm.getDefaultRetryOptions().attempts, 7)
  esm.setDefaultRetryOptions()
  assert.deepEqual(cjs.getDefaultRetryOptions(), esm.getDefaultRetryOptions())
  const [here, there] = [esm.defineWork('here', () => 1), cjs.defineWork('there', () => 1)]
  esm.setIdGenerator(() => 'wid')
  assert.equal(there(undefined).id, 'wid')
  cjs.setIdGenerator()
  assert.ok(here(undefined).id < there(undefined).id)
}

/** A middleware of one build in a hopper of the other, in a harness of the first. */
async function streams() {
  const clock = new (await import('millrace/testing')).FakeClock()
  const number = {
    '~standard': {
      version: /** @type {const} */ (1),
      vendor: 'test',
      validate: (/** @type {unknown} */ value) => ({ value: Number(value) }),
    },
  }
  /** @type {unknown[]} */
  const seen = []
  const hopper = new cjsSource.Hopper({ clock, codec: cjsSource.jsonCodec(), middleware: [esmSource.schema(number)] })
  const harness = new Harness({ hopper, clock, messages: [{ value: '"5"' }] })
  await harness.run((ctx, message) => {
    seen.push(esmSource.decoded(message), cjsSource.decoded(message), esmSource.attempt(ctx)[0])
    return esmSource.ack()
  })
  harness.assertCounts({ acked: 1 })
  assert.deepEqual(seen, [{ ok: true, value: 5 }, { ok: true, value: 5 }, cjsSource.attempt(cjsSource.background())[0]])
}

/** A guild of the CommonJS build: its own plugins by name, and one that only `import()` can load and that brings the other build. */
async function guilds() {
  const plugin = join(folder, 'node_modules', 'waiting-kit')
  mkdirSync(plugin, { recursive: true })
  writeFileSync(join(folder, 'guild.json'), JSON.stringify({ plugins: ['fabricator', 'waiting-kit'] }))
  writeFileSync(join(plugin, 'package.json'), '{ "name": "waiting-kit", "type": "module", "exports": "./index.js" }')
  writeFileSync(join(plugin, 'index.js'), 'await Promise.resolve()\nexport default { kit: { tools: 1 } }\n')
  const guild = await cjsGuild.createGuild({ root: folder })
  assert.deepEqual(guild.failedPlugins(), [])
  assert.ok(guild.apparatus('fabricator'))
  assert.equal(esmGuild.guild(), cjsGuild.guild())
  await guild.shutdown()
}
