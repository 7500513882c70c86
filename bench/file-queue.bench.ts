// What share of raw appends with the same durability does the file queue reach, when every push is on disk before it returns?
//
//   node --import tsx bench/file-queue.bench.ts [--quick]
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryQueue } from '../src/backends/memory/index.js'

const ROUNDS = process.argv.includes('--quick') ? 5 : 9
const BODY = JSON.stringify('x'.repeat(298))
/** What a record takes beside its body: checksum, number, due time, punctuation. */
const RECORD = Buffer.from(`${'0'.repeat(60)}${JSON.stringify(BODY)}\n`)

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
let files = 0
const newFile = () => {
  files += 1
  return join(folder, `file${files}`)
}

function raw(count: number, power: boolean): void {
  const fd = openSync(newFile(), 'a')
  for (let n = 0; n < count; n += 1) {
    writeSync(fd, RECORD)
    if (power) fdatasyncSync(fd)
  }
  closeSync(fd)
}

function queued(count: number, power: boolean): void {
  const queue = memoryQueue({ file: newFile(), durability: power ? 'power' : 'process' })
  for (let n = 0; n < count; n += 1) queue.push(BODY)
}

/** Microseconds per item: of CPU, because the machine may be shared; of wall time where the disk is what is waited for. */
function perItem(run: () => void, count: number, isWaiting: boolean): number {
  const cpu = process.cpuUsage()
  const began = performance.now()
  run()
  const { user, system } = process.cpuUsage(cpu)
  return (isWaiting ? (performance.now() - began) * 1000 : user + system) / count
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!

console.log(
  `${cpus()[0]?.model ?? 'unknown cpu'} × ${cpus().length}, node ${process.version}, 300-byte bodies, ${ROUNDS} rounds`,
)
try {
  for (const [name, power, count] of [
    ['process', false, 20_000],
    ['power', true, 500],
  ] as const) {
    raw(count, power)
    queued(count, power)
    const rounds = Array.from({ length: ROUNDS }, () => [
      perItem(() => raw(count, power), count, power),
      perItem(() => queued(count, power), count, power),
    ])
    const shares = rounds.map(([plain, ours]) => plain! / ours!)
    const [plain, ours] = [0, 1].map((side) => median(rounds.map((round) => round[side]!)).toFixed(1))
    console.log(
      `${name.padEnd(8)} raw append ${plain} µs, push ${ours} µs, share ${median(shares).toFixed(2)} ` +
        `(${Math.min(...shares).toFixed(2)}–${Math.max(...shares).toFixed(2)})   floor 0.3, goal 0.6`,
    )
    if (median(shares) < 0.3) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
