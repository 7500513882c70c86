import type { Backend } from '../../../src/ports/ports.js'
import type { FakeClock } from '../../../src/testing/fake-clock.js'

/** A backend with no data yet, and the clock that it and the systems on it live by. */
export interface OpenedGround {
  readonly backend: Backend
  /** Its `resting` must count calls that the server has not answered. */
  readonly clock: FakeClock
  close(): Promise<void>
}

/** One real backend on which the scenarios of the work engine run. */
export interface RealGround {
  open(): OpenedGround
}

/** The backend that this run of the scenarios is for; `undefined`: the memory backend, in all its forms. */
export async function backendUnderTest(): Promise<RealGround | undefined> {
  const name = process.env['MILLRACE_TEST_GROUND']
  if (name === undefined || name === '') return undefined
  const { ground } = (await import(`./${name}.ts`)) as { readonly ground: RealGround }
  return ground
}
