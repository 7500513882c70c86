// A producer: `node producer.mjs ADDRESS TRUTH_FILE NAME PER_SECOND`. It writes down what was accepted, after it was.
import { createWork } from 'millrace'
import { backendOf } from './backend-of.mjs'
import { TruthLog } from './truth-log.mjs'
import { workTypes } from './work-types.mjs'

const [address = '', file = '', name = '', perSecond = '100'] = process.argv.slice(2)
const EVERY_MS = 50
const PARTS = 8
const log = new TruthLog(file)
const { leaf, fan } = workTypes(async () => {
  throw new Error('a producer runs nothing')
})
const backend = await backendOf(address)
const w = createWork({ backend, autoStart: false, onError: (error, phase) => console.error(phase, error) })
const each = Math.max(1, Math.round((Number(perSecond) * EVERY_MS) / 1_000))
let count = 0
let isEnding = false
/** @type {Set<Promise<void>>} */
const underWay = new Set()

/** @param {number} i */
function build(i) {
  const id = `${name}-${i}`
  const n = (i % 1_000) + 1
  if (i % 20 === 0)
    return { id, work: { ...fan({ id, n, parts: PARTS }), id }, expected: { kind: 'fan', n, parts: PARTS } }
  const poison = i % 50 === 7
  const work = { ...leaf({ n, flaky: i % 10 === 3, poison }), id }
  return { id, work, expected: poison ? { kind: 'poison' } : { kind: 'leaf', result: n * 2 } }
}

async function one() {
  const { id, work, expected } = build(count++)
  try {
    await w.enqueue(work).accepted()
  } catch (error) {
    console.error(id, error)
    // Not accepted, as far as this process knows. It may have happened all the same, and is nobody's promise.
    await log.write({ is: 'unsure', id, at: Date.now() })
    return
  }
  await log.write({ is: 'accepted', id, at: Date.now(), ...expected })
}

const timer = setInterval(() => {
  // A backend that does not answer must not fill this process.
  if (underWay.size > 20 * each) return
  for (let i = 0; i < each; i += 1) {
    const sent = one().finally(() => underWay.delete(sent))
    underWay.add(sent)
  }
}, EVERY_MS)

process.once('SIGTERM', async () => {
  if (isEnding) return
  isEnding = true
  clearInterval(timer)
  await Promise.allSettled(underWay)
  await w.stop()
  await backend.close()
  process.exit(0)
})
// From here on it can be told to end.
await log.write({ is: 'born', at: Date.now() })
