import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextTry, readEnvelope, redrivenEnvelope, writeEnvelope } from '../../src/ports/envelope.js'
import type { Envelope } from '../../src/ports/item.js'

const bare = { id: 'x', type: 'noop', groupId: 'g', input: 'null' }
const full: Envelope = { ...bare, queueAt: 10, startAt: 20, attempt: 3, priority: 5 }

describe('a hand-written body', () => {
  it('is an envelope as soon as it has id, type, groupId and input, and gets defaults for the rest', () => {
    expect(readEnvelope(JSON.stringify(bare))).toEqual({ ...bare, queueAt: 0, startAt: 0, attempt: 1, priority: 0 })
  })

  it('keeps unknown fields', () => {
    const read = readEnvelope(JSON.stringify({ ...bare, colour: { deep: ['red'] } }))

    expect(read?.['colour']).toEqual({ deep: ['red'] })
    expect(JSON.parse(writeEnvelope(read!))).toMatchObject({ colour: { deep: ['red'] } })
  })

  it.each(['not json', '', 'null', '5', '[]', '"text"', '{}', JSON.stringify({ ...bare, input: 5 })])(
    'is not an envelope when it is %s',
    (body) => {
      expect(readEnvelope(body)).toBeUndefined()
    },
  )

  it.each(['id', 'type', 'groupId', 'input'] as const)('is not an envelope without %s', (field) => {
    const { [field]: _, ...rest } = bare
    expect(readEnvelope(JSON.stringify(rest))).toBeUndefined()
  })

  it('reads known fields of the wrong type as absent', () => {
    const body = JSON.stringify({ ...bare, attempt: 'two', priority: null, tags: 'red', gates: [1], deadline: 'soon' })

    expect(readEnvelope(body)).toEqual({ ...bare, queueAt: 0, startAt: 0, attempt: 1, priority: 0 })
  })

  it('never throws and never changes what it could read', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (body) => {
        const read = readEnvelope(body)
        if (read !== undefined) expect(readEnvelope(writeEnvelope(read))).toEqual(read)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the envelope of a later run', () => {
  it('of a retry differs only in attempt and start', () => {
    expect(nextTry(full, 4, 99)).toEqual({ ...full, attempt: 4, startAt: 99 })
  })

  it('of a redrive starts over, counts the redrive and loses a deadline that has passed', () => {
    expect(redrivenEnvelope({ ...full, deadline: 50, redrives: 1 }, 100, 160)).toEqual({
      ...full,
      attempt: 1,
      queueAt: 100,
      startAt: 160,
      redrives: 2,
    })
    expect(redrivenEnvelope({ ...full, deadline: 500 }, 100, 100).deadline).toBe(500)
  })
})
