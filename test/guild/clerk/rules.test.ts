import fc from 'fast-check'
import { canonicalLabel, MANDATE, shortWritId } from 'millrace/guild/clerk'
import { FakeClock, seededRandom } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { checkWritType } from '../../../src/guild/clerk/types/check-writ-type.js'
import { writIds } from '../../../src/guild/clerk/writs/writ-ids.js'
import { TASK } from './machines.js'

describe('ids of writs', () => {
  it('have a time, a chance, and a short form', () => {
    const id = writIds(new FakeClock(), seededRandom(1))()
    expect(id).toMatch(/^w-[0-9a-z]{8}-[0-9a-f]{12}$/)
    expect(Number.parseInt(id.slice(2, 10), 36)).toBe(Date.parse('2026-01-01T00:00:00Z'))
    expect(shortWritId(id)).toBe(id.slice(0, 10))
  })

  it('sort in the order of their making, whatever the clock does and chance says', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -5, max: 5 }), { minLength: 2, maxLength: 50 }),
        fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 1 }),
        (steps, chance) => {
          let now = 1_000
          let drawn = 0
          const next = writIds({ now: () => now }, () => chance[drawn++ % chance.length]!)
          const ids = steps.map((step) => {
            now += step
            return next()
          })
          expect(ids.toSorted()).toEqual(ids)
          expect(new Set(ids).size).toBe(ids.length)
        },
      ),
      { numRuns: 1000 },
    )
  })
})

describe('labels of links', () => {
  it.each([
    ['dependsOn', 'depends on'],
    ['depends_on', 'depends on'],
    ['Depends-On', 'depends on'],
    ['  depends   ON ', 'depends on'],
    ['XMLHttpRequest', 'xml http request'],
    ['isV2Of', 'is v2 of'],
    ['ähnlichÜber', 'ähnlich über'],
    ['-_ ', ''],
    ['blocks', 'blocks'],
  ])('%s is %s', (label, canonical) => {
    expect(canonicalLabel(label)).toBe(canonical)
  })

  it('stay as they are once they are canonical', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'aBé É-_1İßǅΣς\u00a0') })), (label) => {
        expect(canonicalLabel(canonicalLabel(label))).toBe(canonicalLabel(label))
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the rules for a type', () => {
  it('hold for a mandate', () => {
    expect(() => checkWritType(MANDATE)).not.toThrow()
    expect(
      Object.fromEntries(MANDATE.states.map(({ name, allowedTransitions }) => [name, allowedTransitions])),
    ).toEqual({
      new: ['open', 'cancelled'],
      open: ['stuck', 'completed', 'failed', 'cancelled'],
      stuck: ['open', 'failed', 'cancelled'],
      completed: [],
      failed: [],
      cancelled: [],
    })
  })

  const state = (name: unknown, classification: unknown, allowedTransitions: unknown, attrs?: unknown) => ({
    name,
    classification,
    allowedTransitions,
    ...(attrs === undefined ? {} : { attrs }),
  })
  const two = [state('a', 'initial', ['b']), state('b', 'terminal', [])]
  const type = (states: unknown, rest: object = {}) => ({ name: 't', states, ...rest })
  const family = (childrenBehavior: unknown) => ({ ...TASK, childrenBehavior })

  it.each([
    [5, 'The writ type'],
    [{ states: [] }, 'name'],
    [type([]), 't.states'],
    [type('ab'), 't.states'],
    [type([null]), 't.states[0].name'],
    [type([...two, state('a', 'odd', [])]), 't.states[2].name'],
    [type([state('a', 'initial', ['x']), state('b', 'ended', [])]), 't.states[1].classification'],
    [type([state('a', 'initial', [], 'success')]), 't.states[0].attrs'],
    [type([state('a', 'initial', 'b')]), 't.states[0].allowedTransitions'],
    [type([state('a', 'active', ['b', 'x']), state('b', 'active', [])]), 't.states[0].allowedTransitions[1]'],
    [type([state('a', 'active', ['a'])]), 't.states'],
    [type([state('a', 'initial', ['b']), state('b', 'initial', ['a'])]), 't.states'],
    [type([...two, state('c', 'terminal', ['c'])]), 't.states[2].allowedTransitions'],
    [type([...two, state('c', 'active', ['a'])]), 't.states[2]'],
    [type([state('a', 'initial', ['b']), state('b', 'terminal', ['a'])]), 't.states[1].allowedTransitions'],
    [family([]), 'task.childrenBehavior'],
    [family({ allFailure: {} }), 'task.childrenBehavior.allFailure'],
    [family({ allSuccess: {} }), 'task.childrenBehavior.allSuccess.transition'],
    [family({ anyFailure: { transition: 'gone' } }), 'task.childrenBehavior.anyFailure.transition'],
    [family({ parentTerminal: null }), 'task.childrenBehavior.parentTerminal.transition'],
    [
      type(
        [
          state('a', 'initial', ['b', 'c']),
          state('b', 'active', ['a']),
          state('c', 'active', []),
          state('d', 'terminal', []),
        ].map((s) => (s.name === 'b' ? state('b', 'active', ['d']) : s)),
        { childrenBehavior: { allSuccess: { transition: 'd' } } },
      ),
      't.childrenBehavior.allSuccess.transition',
    ],
    [
      family({ parentTerminal: { transition: 'x', resolution: '' } }),
      'task.childrenBehavior.parentTerminal.resolution',
    ],
    [
      family({ allSuccess: { transition: 'done', resolution: 'x', copyResolution: true } }),
      'task.childrenBehavior.allSuccess.resolution',
    ],
    [
      family({ allSuccess: { transition: 'done', copyResolution: 1 } }),
      'task.childrenBehavior.allSuccess.copyResolution',
    ],
    [type(two, { postTo: 'x' }), 't.postTo'],
    [type(two, { postTo: 'b' }), 't.postTo'],
  ])('are broken in %j at %s', (config, path) => {
    expect(() => checkWritType(config)).toThrow(expect.objectContaining({ code: 'BAD_WRIT_TYPE', path }))
  })

  it('allow a target that children of another type have, and one that is not an end', () => {
    expect(() => checkWritType(family({ parentTerminal: { transition: 'elsewhere' } }))).not.toThrow()
    expect(() =>
      checkWritType(family({ allSuccess: { transition: 'review', copyResolution: false, resolution: 'x' } })),
    ).not.toThrow()
  })

  it('are the same as those of a plain reading of them, over any type', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd', '')
    const anyState = fc.record({
      name,
      classification: fc.constantFrom('initial', 'active', 'terminal', 'active', 'terminal', 'odd'),
      allowedTransitions: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 3 }),
    })
    const anyAction = fc.record(
      { transition: name, resolution: fc.constantFrom('x', ''), copyResolution: fc.boolean() },
      { requiredKeys: [] },
    )
    const anyType = fc.record(
      {
        name: fc.constantFrom('t', 't', 't', ''),
        states: fc.oneof(
          { weight: 1, arbitrary: fc.array(anyState, { maxLength: 4 }) },
          // Mostly sound ones, so that the later rules are reached.
          { weight: 4, arbitrary: soundStates() },
        ),
        childrenBehavior: fc.record(
          { allSuccess: anyAction, anyFailure: anyAction, parentTerminal: anyAction },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: ['name', 'states'] },
    )
    let accepted = 0
    fc.assert(
      fc.property(anyType, (config) => {
        const rule = brokenRule(config)
        if (rule === undefined) {
          expect(() => checkWritType(config)).not.toThrow()
          accepted += 1
        } else {
          let thrown: { path?: string } = {}
          try {
            checkWritType(config)
          } catch (error) {
            thrown = error as { path?: string }
          }
          expect(thrown.path).toMatch(rule)
        }
      }),
      { numRuns: 2000 },
    )
    expect(accepted).toBeGreaterThan(50)
  })
})

interface LooseState {
  readonly name: string
  readonly classification: string
  readonly allowedTransitions: readonly string[]
}
interface LooseType {
  readonly name: string
  readonly states: readonly LooseState[]
  readonly childrenBehavior?: Readonly<
    Record<string, { transition?: string; resolution?: string; copyResolution?: boolean }>
  >
}

function soundStates(): fc.Arbitrary<LooseState[]> {
  const some = (...names: string[]) => fc.subarray(names, { minLength: 1 })
  return fc
    .record({ a: some('b', 'c', 'd'), b: fc.subarray(['a', 'b', 'c', 'd']), isTerminal: fc.boolean() })
    .map(({ a, b, isTerminal }) => [
      { name: 'a', classification: 'initial', allowedTransitions: a },
      { name: 'b', classification: 'active', allowedTransitions: b },
      { name: 'c', classification: isTerminal ? 'terminal' : 'active', allowedTransitions: isTerminal ? [] : ['d'] },
      { name: 'd', classification: 'terminal', allowedTransitions: [] },
    ])
}

/** The rules, read one by one in their order, without any of the checked code: the pattern of the first broken place. */
function brokenRule({ name, states, childrenBehavior = {} }: LooseType): RegExp | undefined {
  const names = states.map((state) => state.name)
  const isKnown = (target: string | undefined) => target !== undefined && names.includes(target)
  const live = states.filter(({ classification }) => classification !== 'terminal')
  const reach = (from: string): Set<string> => {
    const seen = new Set([from])
    // As many rounds as there are states are enough to get anywhere.
    for (const _ of states)
      for (const { name: at, allowedTransitions } of states)
        if (seen.has(at)) for (const to of allowedTransitions) seen.add(to)
    return seen
  }
  const actions = ['allSuccess', 'anyFailure', 'parentTerminal'].flatMap((trigger) => childrenBehavior[trigger] ?? [])
  const upward = ['allSuccess', 'anyFailure'].flatMap((trigger) => childrenBehavior[trigger] ?? [])
  const rules: readonly (readonly [boolean, RegExp])[] = [
    [name === '', /^name$/],
    [states.length === 0, /^t\.states$/],
    [names.includes('') || new Set(names).size < names.length, /\.name$/],
    [states.some(({ classification }) => classification === 'odd'), /\.classification$/],
    [states.some(({ allowedTransitions }) => !allowedTransitions.every(isKnown)), /\.allowedTransitions\[\d\]$/],
    [states.filter(({ classification }) => classification === 'initial').length !== 1, /^t\.states$/],
    [
      states.some((s) => s.classification !== 'initial' && !states.some((o) => o.allowedTransitions.includes(s.name))),
      /^t\.states\[\d\]$/,
    ],
    [states.some((s) => s.classification === 'terminal' && s.allowedTransitions.length > 0), /\.allowedTransitions$/],
    [actions.some(({ transition = '' }) => transition === ''), /\.transition$/],
    [
      upward.some(({ transition }) => !isKnown(transition) || live.some((s) => !reach(s.name).has(transition!))),
      /\.(allSuccess|anyFailure)\.transition$/,
    ],
    [
      actions.some(
        ({ resolution, copyResolution }) => resolution === '' || (resolution !== undefined && copyResolution === true),
      ),
      /\.resolution$/,
    ],
  ]
  return rules.find(([isBroken]) => isBroken)?.[1]
}
