import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import {
  advanceStamp,
  checkedId,
  type IdGenerator,
  newId,
  newToken,
  type Stamp,
  setIdGenerator,
  uuidGenerator,
} from '../../src/core/ids.js'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
const take = (generate: IdGenerator, count: number) => Array.from({ length: count }, generate)
const isRising = (ids: readonly string[]) => ids.every((id, i) => i === 0 || ids[i - 1]! < id)

// Hundreds of thousands of ids, on processors that other suites use too.
const patience = { timeout: 60_000 }

afterEach(() => setIdGenerator())

describe('ids made by default', patience, () => {
  it('are UUIDs of version 7 with the right variant bits', () => {
    for (const id of take(newId, 2_000)) expect(id).toMatch(UUID_V7)
  })

  it('carry the time of their making', () => {
    const from = Date.now()
    const id = newId()
    expect(timeOf(id)).toBeGreaterThanOrEqual(from)
    expect(timeOf(id)).toBeLessThanOrEqual(Date.now())
  })

  it('are unique and in order over 200 000 of them', () => {
    const ids = take(newId, 200_000)
    expect(new Set(ids).size).toBe(ids.length)
    expect(isRising(ids)).toBe(true)
  })
})

describe('ids under a clock that misbehaves', patience, () => {
  it('stay in order and unique whatever the clock reads', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.double(), fc.integer({ min: 1_000, max: 1_010 })), { minLength: 2 }),
        (times) => {
          let i = 0
          const generate = uuidGenerator({ now: () => times[i++]! })
          const ids = take(generate, times.length)
          expect(isRising(ids)).toBe(true)
          for (const id of ids) expect(id).toMatch(UUID_V7)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('keep the order when it is set back, and follow it again once it has caught up', () => {
    let now = 1_800_000_000_000
    const generate = uuidGenerator({ now: () => now })
    const ids = take(generate, 10)
    now -= 86_400_000
    ids.push(...take(generate, 10))
    now += 86_400_001
    ids.push(...take(generate, 10))
    expect(isRising(ids)).toBe(true)
    expect(timeOf(ids[15]!)).toBe(1_800_000_000_000)
    expect(timeOf(ids[29]!)).toBe(1_800_000_000_001)
  })

  it('stay in order and unique when the clock stops', () => {
    const still = take(uuidGenerator({ now: () => 5 }), 200_000)
    expect(new Set(still).size).toBe(200_000)
    expect(isRising(still)).toBe(true)
  })

  it('borrow the next millisecond when the counter of one is used up', () => {
    const stamp: Stamp = { ms: 5, seq: -2 }
    advanceStamp(stamp, 5, 99)
    expect(stamp).toEqual({ ms: 5, seq: -1 })
    advanceStamp(stamp, 5, 99)
    expect(stamp).toEqual({ ms: 6, seq: 0 })
    advanceStamp(stamp, 6, 99)
    expect(stamp).toEqual({ ms: 6, seq: 1 })
    advanceStamp(stamp, 7.9, 99)
    expect(stamp).toEqual({ ms: 7, seq: 99 })
  })
})

describe('generators with a given time and chance', patience, () => {
  const fixed = () => {
    let n = 0
    const fillRandom = (bytes: Uint8Array) => {
      for (let i = 0; i < bytes.length; i += 1) bytes[i] = n++ % 251
    }
    return uuidGenerator({ now: () => 42, fillRandom })
  }

  it('repeat exactly', () => {
    const ids = take(fixed(), 2_000)
    expect(take(fixed(), 2_000)).toEqual(ids)
    expect(ids[0]).toBe('00000000-002a-7000-8408-0c0506070809')
  })

  it('put the time, the counter and the random bits where RFC 9562 has them', () => {
    // The time of its example, and a counter of 0x4cc318c4: 12 bits behind the version, 20 behind the variant.
    const fill = (bytes: Uint8Array) => bytes.set([0x4c, 0xc3, 0x18, 0xc4, 0x00, 0x0c, 0x0c, 0x07, 0x39, 0x8f])
    expect(uuidGenerator({ now: () => 1_645_557_742_000, fillRandom: fill })()).toBe(
      '017f22e2-79b0-74cc-8c63-100c0c07398f',
    )
  })

  it('do not share anything: two of them started in the same millisecond never meet', () => {
    const one = uuidGenerator({ now: () => 42 })
    const two = uuidGenerator({ now: () => 42 })
    expect(new Set([...take(one, 50_000), ...take(two, 50_000)]).size).toBe(100_000)
  })
})

describe('a generator set for the process', () => {
  // S44
  it('makes the ids until it is reset', () => {
    let n = 0
    setIdGenerator(() => `wid-${++n}`)
    expect(newId()).toMatch(/^wid-\d+$/)
    expect(newId()).toBe('wid-2')
    setIdGenerator()
    expect(newId()).toMatch(UUID_V7)
  })

  it.each([undefined, null, '', 7, {}])('is refused when it returns %o, naming who returned it', (bad) => {
    setIdGenerator((() => bad) as unknown as IdGenerator)
    expect(newId).toThrow(/setIdGenerator\(\) must return a non-empty string/)
    try {
      newId()
    } catch (error) {
      expect(error).toMatchObject({ code: 'INVALID_ID', name: 'InvalidIdError' })
    }
  })

  it('has to be a function', () => {
    expect(() => setIdGenerator('wid' as unknown as IdGenerator)).toThrow(TypeError)
    expect(newId()).toMatch(UUID_V7)
  })

  it('shares its check with the option of a system', () => {
    expect(checkedId('a', 'generateId')).toBe('a')
    expect(() => checkedId('', 'generateId')).toThrow(/^generateId must return a non-empty string, but returned ""/)
  })
})

describe('lease tokens', patience, () => {
  it('are short, safe in keys, URLs and commands, and never repeat', () => {
    const tokens = take(newToken, 200_000)
    expect(new Set(tokens).size).toBe(tokens.length)
    // One that begins with a dash would be taken for a flag.
    for (const token of tokens.slice(0, 2_000)) expect(token).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{15}$/)
  })

  it('have 96 bits, each as often set as not', () => {
    const ones = new Array<number>(96).fill(0)
    expect(Buffer.from(newToken(), 'base64url')).toHaveLength(12)
    const count = 20_000
    for (const token of take(newToken, count)) {
      const bytes = Buffer.from(token, 'base64url')
      for (let bit = 0; bit < 96; bit += 1) ones[bit]! += (bytes[bit >> 3]! >> (bit & 7)) & 1
    }
    // Half of 20 000 with a standard deviation of 71; of the first six bits 159 away, since a dash is never the first character. 500 away is
    // nearly 5 sigma for these, 7 for the others.
    for (const seen of ones) expect(Math.abs(seen - count / 2)).toBeLessThan(500)
  })
})
