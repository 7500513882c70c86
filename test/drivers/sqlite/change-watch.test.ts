import { expect, it } from 'vitest'
import { ChangeWatch } from '../../../src/drivers/sqlite/change-watch.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { temporaryFile } from './temporary.js'

it('a version that cannot be read for a moment is asked for again, and ends no process', async () => {
  const clock = new FakeClock()
  const versions: (number | Error)[] = [1, new Error('locking protocol'), 2]
  let changes = 0
  const watch = new ChangeWatch(
    temporaryFile(),
    clock,
    () => {
      const version = versions.length > 1 ? versions.shift()! : versions[0]!
      if (version instanceof Error) throw version
      return version
    },
    () => {
      changes += 1
    },
  )
  await clock.advance(250)
  expect(changes).toBe(0)
  await clock.advance(250)
  expect(changes).toBe(1)
  watch.close()
})
