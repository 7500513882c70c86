import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { LIMIT_MS, type Plant, runTests, type TestRun } from './faulty-run.js'

/** A fault of one line, and the test that must notice it. */
export interface OneLineFault extends Plant {
  /** What is wrong, in words. */
  readonly fault: string
  /** A test file, and a part of the full name of the test that fails because of the fault. */
  readonly caughtBy: { readonly file: string; readonly test: string }
}

const NOTHING: TestRun = { passed: [], failed: [], broken: undefined }

/** Runs at the same time. Each is its own process, on a machine that may have two cores. */
const WIDTH = 2

/**
 * Each fault is its own process, and there are many: a run plants every third of them, the same ones in every run, so
 * `npm test` stays short. `MILLRACE_ALL_FAULTS=1` plants them all: use it after a change of a fault or its test.
 */
const isPlanted = (_: OneLineFault, index: number) =>
  process.env['MILLRACE_ALL_FAULTS'] !== undefined || index % 3 === 0

/**
 * Shows that tests notice what they are there to notice: plants each fault in turn and expects its test to fail. The same
 * tests must pass without a fault, or everything would seem to be noticed.
 */
export function describeFaults(layer: string, all: readonly OneLineFault[]): void {
  const faults = all.filter(isPlanted)
  describe(`a fault in ${layer}`, () => {
    // A slow file runs beside this one in the same run, and once is enough; the others were run before.
    const again = faults.filter(({ caughtBy }) => !/\.(slow|server)\.test\.ts$/.test(caughtBy.file))
    const files = [...new Set(again.map((fault) => fault.caughtBy.file))]
    let sound: Promise<TestRun>
    let runs: readonly Promise<TestRun>[]

    beforeAll(() => {
      sound =
        files.length === 0
          ? Promise.resolve(NOTHING)
          : runTests(files, [...new Set(again.map((fault) => fault.caughtBy.test))])
      runs = spread(WIDTH, faults, async ({ file, find, replace, caughtBy }) => {
        await sound
        return runTests([caughtBy.file], [caughtBy.test], { file, find, replace })
      })
    })

    it('is in a line that exists, once', () => {
      const lost = all.filter(({ file, find }) => readFileSync(join(root, file), 'utf8').split(find).length !== 2)
      expect(lost.map(({ fault, file }) => `${file}: ${fault}`)).toEqual([])
    })

    it('is not needed for a test to fail: without it all of them pass', { timeout: LIMIT_MS }, async () => {
      const { passed, failed, broken } = await sound
      expect({ failed, broken }).toEqual({ failed: [], broken: undefined })
      const missing = again.filter(({ caughtBy }) => !passed.some((name) => name.includes(caughtBy.test)))
      expect(missing.map(({ caughtBy }) => `${caughtBy.file}: ${caughtBy.test}`)).toEqual([])
    })

    faults.forEach(({ fault, caughtBy }, index) => {
      it(`"${fault}" is noticed by "${caughtBy.test}"`, { timeout: 2 * LIMIT_MS }, async () => {
        const { failed, passed, broken } = await runs[index]!
        expect(broken).toBeUndefined()
        expect(failed, `these passed: ${passed.join('; ')}`).toContainEqual(expect.stringContaining(caughtBy.test))
      })
    })
  })
}

/** Starts `run` for each of the items in order, at most `width` at a time. */
function spread<T, R>(width: number, items: readonly T[], run: (item: T) => Promise<R>): readonly Promise<R>[] {
  const tails: Promise<unknown>[] = Array.from({ length: width }, () => Promise.resolve())
  return items.map((item, i) => {
    const done = tails[i % width]!.then(() => run(item))
    tails[i % width] = done.catch(() => undefined)
    // Its own test awaits it; that it failed before its turn came is not unhandled.
    done.catch(() => undefined)
    return done
  })
}
