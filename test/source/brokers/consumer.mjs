// One process of a fleet that reads a broker: `node consumer.mjs SETTINGS`, where the settings are JSON. It writes what it does into
// its truth log, line by line, before and after; a kill leaves the lines. After SIGTERM it drains and exits with 0.
import { appendFileSync } from 'node:fs'
import { createWork, defineContract, PoisonError } from 'millrace'
import { pipe } from 'millrace/pipe'
import { ack, attempt, dlq, Hopper, nak, retry } from 'millrace/source'
import { JetStreamInlet } from 'millrace/source/nats'
import { RedisStreamInlet } from 'millrace/source/redis'
import { sqliteBackend } from 'millrace/sqlite'

/**
 * @typedef {object} Settings
 * @property {'redis' | 'nats'} broker
 * @property {string} url
 * @property {string} stream
 * @property {string} letters
 * @property {string} file the truth log of this process
 * @property {number} leaseMs
 * @property {number} handleMs how long a handler takes
 * @property {number} attempts
 * @property {string} work a file of SQLite: messages become work there. Empty: they are handled here
 */

/** @type {Settings} */
const settings = JSON.parse(process.argv[2] ?? '{}')
const { broker, url, stream, letters: deadLetters, leaseMs } = settings
const common = { leaseMs, deadLetters, idlePollMs: 200, onError: () => undefined }
const inlet =
  broker === 'redis'
    ? new RedisStreamInlet({ ...common, url, stream, group: 'fleet' })
    : new JetStreamInlet({ ...common, servers: url, stream, durable: 'fleet' })

/** @param {Record<string, unknown>} line */
const log = (line) => appendFileSync(settings.file, `${JSON.stringify(line)}\n`)
/** @param {import('millrace/source').Message} message */
const numberIn = (message) => Number(new TextDecoder().decode(message.value))
const isPoison = (/** @type {number} */ n) => n % 97 === 0
const failsAlways = (/** @type {number} */ n) => n % 101 === 0 && !isPoison(n)
const failsFirst = (/** @type {number} */ n) => n % 10 === 3

const hopperOptions = {
  concurrency: 16,
  lagIntervalMs: 0,
  // A server that is restarted is away for a while.
  settle: { attempts: 8, maxConsecutiveFailures: 1_000 },
  fetchRetry: { attempts: 100, maxMs: 500 },
  middleware: [dlq(inlet.letters), retry({ maxAttempts: settings.attempts, backoff: () => 50 })],
}

if (settings.work === '') {
  const hopper = new Hopper(hopperOptions)
  process.once('SIGTERM', () => void hopper.close())
  log({ is: 'born' })
  await hopper.receive(inlet, { topics: [] }, async (ctx, message) => {
    const n = numberIn(message)
    const [tries] = attempt(ctx)
    log({ is: 'start', n, tries })
    await new Promise((resolve) => setTimeout(resolve, settings.handleMs))
    if (isPoison(n)) {
      log({ is: 'failed', n })
      throw new PoisonError(`${n} is poison`)
    }
    if (failsAlways(n) || (failsFirst(n) && tries === 1)) {
      log({ is: 'failed', n })
      return nak(new Error(`${n} fails`))
    }
    log({ is: 'done', n })
    return ack()
  })
} else {
  const backend = sqliteBackend({ file: settings.work })
  const order = defineContract('order').takes()
  const w = createWork({ backend, work: [order], autoStart: false, log: false })
  const running = pipe(inlet, {
    to: w,
    hopper: { ...hopperOptions, concurrency: 1 },
    batch: { size: 50 },
    as: async (message) => {
      const n = numberIn(message)
      if (isPoison(n)) throw new PoisonError(`${n} is poison`)
      // As much work as it takes for a fleet to be killed in the middle of it.
      await new Promise((resolve) => setTimeout(resolve, settings.handleMs))
      return [order({ n }), { tags: [String(n)] }]
    },
  })
  process.once('SIGTERM', () => void running.close())
  log({ is: 'born' })
  await running.done
  await w.stop()
  await backend.close()
}
await inlet.close()
process.exit(0)
