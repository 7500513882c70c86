import { inject } from 'vitest'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { isResting, Schemas } from '../../backends/postgres/schemas.js'
import type { RealGround } from './ground.js'

let schemas: Schemas | undefined

/** A schema on the private server of the run, on a clock that stops during calls to the server. */
export const ground: RealGround = {
  open() {
    schemas ??= Schemas.at(inject('postgresUrl'))
    const mine = schemas
    const clock = new FakeClock({ resting: isResting })
    const backend = mine.make({ clock })
    return { backend, clock, close: () => mine.close(backend) }
  },
}
