import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { run } from './prometheus-tools.js'

interface Measured {
  readonly incBytes: number
  readonly setBytes: number
  readonly observeBytes: number
  readonly bareNs: number
  readonly doerNs: number
}

let measured: Measured

beforeAll(async () => {
  const script = fileURLToPath(new URL('./hot-path.ts', import.meta.url))
  const flags = ['--expose-gc', '--max-semi-space-size=256', '--min-semi-space-size=256', '--import', 'tsx']
  const { code, output } = await run(process.execPath, [...flags, script])
  expect(code, output).toBe(0)
  measured = JSON.parse(output) as Measured
})

describe('what every item of work pays', () => {
  it('counting, setting and observing allocate nothing (a number alone would be 12 bytes or more)', () => {
    expect(measured.incBytes).toBeLessThan(4)
    expect(measured.setBytes).toBeLessThan(4)
    expect(measured.observeBytes).toBeLessThan(4)
  })

  it('an unlimited doer adds well under a microsecond to a task', () => {
    expect(measured.doerNs - measured.bareNs).toBeLessThan(500)
  })
})
