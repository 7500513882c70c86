// Pushes and acks on a file queue until it is killed, and notes in a separate file what has been accepted, line by line:
// `p <n>` once a push has returned, `a <n>` once an ack has. Run by file-kill.slow.test.ts.
import { openSync, writeSync } from 'node:fs'
import { memoryBackend, memoryQueue } from '../../../src/backends/memory/index.js'
import { ownedBy } from '../../../src/ports/find-ledger.js'

const [file, notes, mode] = process.argv.slice(2)
if (file === undefined || notes === undefined)
  throw new Error('usage: push-and-ack.child.ts <file> <notes> plain|native')
const out = openSync(notes, 'a')
const say = (line: string) => writeSync(out, `${line}\n`)
const padding = 'x'.repeat(2_000)

if (mode === 'plain') {
  const queue = memoryQueue({ file })
  for (let n = 0; ; n += 1) {
    queue.push(JSON.stringify({ n, padding }))
    say(`p ${n}`)
    // Two of three are taken out again, so that the journal fills with old news and is rewritten again and again.
    if (n % 3 === 0) continue
    const [pulled] = queue.pop(1, 60_000)
    if (pulled === undefined) continue
    say(`t ${(JSON.parse(pulled.body) as { n: number }).n}`)
    queue.ack(pulled)
    say(`a ${(JSON.parse(pulled.body) as { n: number }).n}`)
  }
} else {
  const owned = ownedBy(memoryBackend({ queue: { file } }), [])
  if (!('open' in owned)) throw new Error('no native ledger')
  const ledger = owned.open({ prefix: 'work:' })
  for (let n = 0; ; n += 1) {
    // Ten items and no other number of them: a commit is on disk as a whole.
    const effects = Array.from({ length: 10 }, (_, i) => ({
      do: 'enqueue' as const,
      item: {
        id: `${n}-${i}`,
        type: 't',
        groupId: `g${n}`,
        input: padding,
        queueAt: 0,
        startAt: 0,
        attempt: 1,
        priority: 0,
      },
      queue: i % 2 === 0 ? 'default' : 'bulk',
      delayMs: 0,
    }))
    await ledger.commit([{ guard: { by: 'none' }, effects }])
    say(`p ${n}`)
  }
}
