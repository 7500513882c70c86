import { describe, expect, it } from 'vitest'
import { RoomSignal } from '../../src/core/time/room-signal.js'

describe('a room signal', () => {
  it('has nothing to wait for while there is room', () => {
    expect(new RoomSignal(() => false).whenRoom()).toBeUndefined()
  })

  it('resolves one promise for all waiters, once there is room, and then starts anew', async () => {
    let waiting = 2
    const signal = new RoomSignal(() => waiting > 0)
    const [first, second] = [signal.whenRoom(), signal.whenRoom()]
    expect(first).toBe(second)
    let isOpen = false
    void first?.then(() => {
      isOpen = true
    })
    waiting = 1
    signal.left()
    await Promise.resolve()
    expect(isOpen).toBe(false)
    waiting = 0
    signal.left()
    await first
    waiting = 1
    expect(signal.whenRoom()).not.toBe(first)
  })
})
