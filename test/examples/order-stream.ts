import { spawnSync } from 'node:child_process'
import { expect } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'

/** Runs the order stream on a backend: it says the same on each. */
export function expectOrderStreamOn(address: string): void {
  const { command, args, env } = typescriptProgram('examples/order-stream.ts')
  const { status, stdout, stderr } = spawnSync(command, [...args, address], {
    ...{ cwd: root, env, encoding: 'utf8', timeout: 60_000 },
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const [, orders = '', letters = '', redriven = '', served = '', left = ''] = stdout.split(/^\d\. .*\n/m)
  expect(orders).toBe('   4 shipped, 1 skipped as done before, 5 dead-lettered\n')
  expect(letters.trimEnd().split('\n').toSorted()).toEqual([
    '   poison after 1: PoisonError: cyd-1 orders -1',
    '   poison after 1: PoisonError: cyd-2 orders 0',
    ...Array.from({ length: 3 }, () => "   retryable after 3: Error: bob's bank is closed"),
  ])
  expect(redriven).toBe('   3 redriven, 3 shipped, 1 skipped\n')
  expect(served.split('\n')).toEqual([
    '   ada: ada-1 from north, ada-2 from north, ada-3 from north',
    '   bob: bob-1 from north, bob-2 from north, bob-3 from north',
    '   cyd: cyd-3 from north',
    '',
  ])
  expect(left.split('\n')).toEqual([
    '   PoisonError: cyd-1 orders -1; PoisonError: cyd-2 orders 0',
    '   ann (the bank is open): redrive of dead letters queue:orders class:retryable began: 3 match',
    '   ann (the bank is open): redrive of dead letters queue:orders class:retryable done: 3 changed, 0 had gone',
    '',
  ])
}
