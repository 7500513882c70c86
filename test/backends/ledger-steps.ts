import fc from 'fast-check'

/** The group that an item joins: a common one, its own that has its name, or the one that the first item has founded. */
export type Company = number | 'own' | 'first'

/**
 * A random day in the life of a ledger, as data: what is enqueued, claimed, settled, paused, cancelled, redriven. Items and
 * leases are named by numbers that the player resolves, so that a failing day shrinks to a short one.
 */
export type Deed =
  | {
      readonly do: 'enqueue'
      readonly item: number
      readonly group: Company
      readonly type: number
      readonly queue: number
      readonly priority: number
      readonly delayMs: number
      readonly deadlineMs: number | undefined
      readonly waits: boolean
      /** It also folds a value into its group, on the newest version or on an old one. */
      readonly folds: 'no' | 'fresh' | 'old'
      /** Born under a lease, which the next deeds may settle, in the same batch too. */
      readonly isHeld: boolean
    }
  | {
      readonly do: 'complete'
      readonly lease: number
      readonly children: number
      readonly value: string | undefined
      readonly final: boolean
      /** The value of the group is the result of the item, too. */
      readonly isValue: boolean
      readonly keepMs: number
    }
  /** Folds on the version that the player has last read, which may be an old one. */
  | {
      readonly do: 'append'
      readonly lease: number
      readonly isFresh: boolean
      readonly ends: 'complete' | 'deadLetter' | 'retry'
      readonly children: number
    }
  | { readonly do: 'deadLetter'; readonly lease: number; readonly keepMs: number }
  | { readonly do: 'retry'; readonly lease: number; readonly delayMs: number; readonly reason: 'retry' | 'deferred' }
  | { readonly do: 'release'; readonly lease: number; readonly delayMs: number | undefined }
  /** The last settlement of a lease once more, as after a lost reply. */
  | { readonly do: 'repeat'; readonly nth: number }
  | { readonly do: 'requestCancel'; readonly item: number }
  | { readonly do: 'mark'; readonly item: number }
  /** A person lets it run immediately. */
  | { readonly do: 'runNow'; readonly item: number }
  | { readonly do: 'redrive'; readonly item: number; readonly delayMs: number }
  | { readonly do: 'delete'; readonly item: number }
  | {
      readonly do: 'gate'
      readonly members: readonly number[]
      readonly need: number
      readonly of: 'done' | 'success'
      readonly delayMs: number
    }
  | { readonly do: 'notifyGate'; readonly gate: number; readonly item: number; readonly ok: boolean }
  | { readonly do: 'pause' | 'resume'; readonly what: 'queue' | 'type'; readonly which: number }
  | { readonly do: 'fire'; readonly isFresh: boolean }

export type Step =
  | { readonly do: 'commit'; readonly deeds: readonly Deed[] }
  | {
      readonly do: 'claim'
      readonly queues: readonly { readonly queue: number; readonly max: number }[]
      readonly leaseMs: number
      /** What there is room for: types by number. */
      readonly rooms: readonly { readonly types: readonly number[]; readonly max: number }[] | undefined
    }
  /** A caller begins to wait for an item and for a group. */
  | { readonly do: 'watch'; readonly item: number; readonly group: Company }
  | { readonly do: 'extend'; readonly leases: readonly number[]; readonly running: boolean; readonly leaseMs: number }
  | { readonly do: 'pass'; readonly ms: number }

const which = fc.nat(11)
// Whole seconds: the player moves time by a millisecond at each step, so that two due times never meet by accident.
const delayMs = fc.constantFrom(0, 0, 1000, 2000, 5000)
const keepMs = fc.constantFrom(4000, 60_000, 600_000)
const small = fc.nat(1)
const group: fc.Arbitrary<Company> = fc.constantFrom<Company[]>(0, 1, 2, 'own', 'own', 'first')
const rarely = fc.constantFrom(false, false, false, false, true)
const is = <const T extends string>(word: T) => fc.constant(word)

const max = fc.nat(3)
const rooms = fc.oneof(
  fc.constant([]),
  fc.record({ types: fc.constantFrom([0], [1], [0, 1], [1, 0]), max }).map((room) => [room]),
  fc.tuple(max, max).map(([first, second]) => [
    { types: [0], max: first },
    { types: [1], max: second },
  ]),
)

const ofLease = { lease: fc.nat(5) }

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: is('enqueue'),
      item: which,
      group,
      type: small,
      queue: small,
      priority: fc.integer({ min: -1, max: 1 }),
      delayMs,
      deadlineMs: fc.constantFrom(undefined, undefined, 1500, 3500),
      waits: fc.boolean(),
      folds: fc.constantFrom('no', 'no', 'no', 'no', 'fresh', 'old'),
      isHeld: rarely,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: is('complete'),
      ...ofLease,
      children: fc.nat(2),
      value: fc.option(fc.constantFrom('"a"', '"b"'), { nil: undefined }),
      final: fc.boolean(),
      isValue: fc.boolean(),
      keepMs,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: is('append'),
      ...ofLease,
      isFresh: fc.boolean(),
      ends: fc.constantFrom('complete', 'complete', 'deadLetter', 'retry'),
      children: fc.constantFrom(0, 0, 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: is('deadLetter'), ...ofLease, keepMs }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: is('retry'), ...ofLease, delayMs, reason: fc.constantFrom('retry', 'deferred') }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: is('release'), ...ofLease, delayMs: fc.option(delayMs, { nil: undefined }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: is('repeat'), nth: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: is('requestCancel'), item: which }) },
  { weight: 1, arbitrary: fc.record({ do: is('mark'), item: which }) },
  { weight: 1, arbitrary: fc.record({ do: is('runNow'), item: which }) },
  { weight: 2, arbitrary: fc.record({ do: is('redrive'), item: which, delayMs }) },
  { weight: 1, arbitrary: fc.record({ do: is('delete'), item: which }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: is('gate'),
      members: fc.uniqueArray(which, { maxLength: 3 }),
      need: fc.nat(3),
      of: fc.constantFrom('done', 'success'),
      delayMs: fc.constantFrom(3000, 60_000, Number.POSITIVE_INFINITY),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: is('notifyGate'), gate: fc.nat(3), item: which, ok: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('pause', 'resume'),
      what: fc.constantFrom('queue', 'type'),
      which: small,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: is('fire'), isFresh: fc.boolean() }) },
)

export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: is('commit'), deeds: fc.array(deed, { minLength: 1, maxLength: 4 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: is('claim'),
      queues: fc.uniqueArray(fc.record({ queue: small, max: fc.nat(3) }), {
        selector: ({ queue }) => queue,
        minLength: 1,
      }),
      leaseMs: fc.constantFrom(2000, 30_000),
      rooms: fc.option(rooms, { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: is('watch'), item: which, group }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: is('extend'),
      leases: fc.uniqueArray(fc.nat(5), { maxLength: 3 }),
      running: fc.boolean(),
      leaseMs: fc.constantFrom(2000, 30_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: is('pass'), ms: fc.constantFrom(1000, 3000, 31_000, 120_000) }) },
)
