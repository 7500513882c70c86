// How Millrace looks at a failure: what kind it is, when it would be tried again, and a flaky call that gets through.
// It needs no server. Run it with: npx tsx examples/classify-and-retry.ts
import { classify, InvalidForStateError, PoisonError, preview, RetryAfterError, retry } from 'millrace'

console.log('1. What kind of failure is it?\n')

const failures: readonly (readonly [string, unknown])[] = [
  ['a plain error', new Error('something went wrong')],
  ['the connection was reset', Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
  ['HTTP 429', Object.assign(new Error('Too Many Requests'), { status: 429, headers: { 'retry-after': '5' } })],
  ['HTTP 422', Object.assign(new Error('Unprocessable Content'), { status: 422 })],
  ['an order with a negative total', new PoisonError('order 7 has a negative total')],
  ['a cancel after delivery', new InvalidForStateError('order 7 has been delivered')],
  ['the bank is closed', new RetryAfterError(30_000, 'the bank is closed')],
  ['a wrapped cause', new Error('could not save', { cause: new PoisonError('no such table') })],
]

row('failure', 'class', 'decided by', 'not before')
for (const [name, error] of failures) {
  const { class: kind, rule, floorMs } = classify(error)
  row(name, kind, rule, floorMs === undefined ? '' : `${floorMs} ms`)
}

console.log('\n2. When would five attempts run, from 1 s doubling, with half of each wait left to chance?\n')

row('attempt', 'wait before it', 'since the first')
for (const { attempt, waitMs, sinceStartMs } of preview({ attempts: 5, base: 1000, jitter: 0.5 })) {
  row(String(attempt), range(waitMs), range(sinceStartMs))
}

console.log('\n3. An operation that fails twice:\n')

const answer = await retry(
  ({ attempt }) => {
    if (attempt < 3) throw new Error(`attempt ${attempt} timed out`)
    return `attempt ${attempt} got through`
  },
  {
    attempts: 5,
    base: 200,
    onRetry: (error, { attempt, attempts }) =>
      console.log(`   ${(error as Error).message}; ${attempts - attempt} attempts left, waiting …`),
  },
)
console.log(`   ${answer}.`)

function row(...cells: readonly string[]): void {
  console.log(
    `   ${cells
      .map((cell) => cell.padEnd(32))
      .join('')
      .trimEnd()}`,
  )
}

function range({ minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }): string {
  return minMs === maxMs ? `${minMs} ms` : `${minMs} to ${maxMs} ms`
}
