import type { Inspect } from '../../src/ports/inspect.js'
import type { Lease } from '../../src/ports/item.js'
import type { Ledger, WorkerRecord } from '../../src/ports/ledger.js'
import type { CommitResult, Effect, Settlement } from '../../src/ports/settlement.js'
import type { LedgerClauseName } from '../../src/testing/conformance/clauses.js'

/** A fault of one line in a ledger that is right otherwise, and a clause that must notice it. */
export interface LedgerMutant {
  readonly fault: string
  readonly caughtBy: LedgerClauseName
  readonly of: (ledger: Ledger) => Partial<Ledger>
  /** A random story shows it too, when it is played against the model. */
  readonly isPlayed?: true
}

/** Every effect changed on its way in; `undefined` leaves it out. */
const effects =
  (change: (effect: Effect, settlement: Settlement) => Effect | undefined) =>
  (ledger: Ledger): Partial<Ledger> => ({
    commit: (batch) =>
      ledger.commit(
        batch.map((settlement) => ({
          ...settlement,
          effects: settlement.effects.flatMap((effect) => change(effect, settlement) ?? []),
        })),
      ),
  })

/** What did not hold is committed again behind another guard, or as other effects. */
const insists =
  (again: (settlement: Settlement, result: CommitResult) => Settlement | undefined) =>
  (ledger: Ledger): Partial<Ledger> => ({
    commit: async (batch) => {
      const results = [...(await ledger.commit(batch))]
      for (const [i, settlement] of batch.entries()) {
        const next = again(settlement, results[i]!)
        if (next !== undefined) results[i] = (await ledger.commit([next]))[0]!
      }
      return results
    },
  })

const answers =
  (change: (result: CommitResult, settlement: Settlement) => CommitResult) =>
  (ledger: Ledger): Partial<Ledger> => ({
    commit: async (batch) => (await ledger.commit(batch)).map((result, i) => change(result, batch[i]!)),
  })

export const ledgerMutants: readonly LedgerMutant[] = [
  {
    fault: 'there is no fence: a stale lease settles all the same',
    caughtBy: 'ledger: a stale lease can settle nothing',
    isPlayed: true,
    of: insists(({ guard, effects }, { kind }) =>
      guard.by === 'lease' && kind === 'stale' ? { guard: { by: 'none' }, effects } : undefined,
    ),
  },
  {
    fault: 'a repeated enqueue is applied again',
    caughtBy: 'ledger: repeating an enqueue adds nothing',
    isPlayed: true,
    of: insists(({ guard, effects }, { kind }) =>
      guard.by === 'absent' && kind === 'repeated' ? { guard: { by: 'none' }, effects } : undefined,
    ),
  },
  {
    fault: 'a commit repeated after a lost reply is called stale',
    caughtBy: 'ledger: a settlement repeated after a lost reply happens once',
    isPlayed: true,
    of: answers((result) => (result.kind === 'repeated' ? { kind: 'stale' } : result)),
  },
  {
    fault: 'a repeated end takes one off the group, unconditionally',
    caughtBy: 'ledger: a settlement repeated after a lost reply happens once',
    isPlayed: true,
    of: (ledger) => ({
      commit: async (batch) => {
        const results = await ledger.commit(batch)
        for (const [i, { effects }] of batch.entries())
          if (results[i]?.kind === 'repeated')
            await ledger.commit([{ guard: { by: 'none' }, effects: effects.filter((e) => e.do === 'leaveGroup') }])
        return results
      },
    }),
  },
  {
    fault: 'final locks nothing: the last contribution wins',
    caughtBy: 'ledger: the first final group value wins',
    isPlayed: true,
    of: effects((effect) => (effect.do === 'setGroupValue' ? { ...effect, final: false } : effect)),
  },
  {
    fault: 'the expected version is not compared',
    caughtBy: 'ledger: a group value computed from an old version conflicts',
    isPlayed: true,
    of: effects((effect) => {
      if (effect.do !== 'setGroupValue') return effect
      const { ifVersion: _, ...rest } = effect
      return rest
    }),
  },
  {
    fault: 'a member that is reported twice counts twice',
    caughtBy: 'ledger: a gate counts a member that notifies it twice once',
    isPlayed: true,
    of: (ledger) => {
      const uncounted = new Map<string, string[]>()
      return effects((effect) => {
        if (effect.do === 'openGate') uncounted.set(effect.key, [...effect.members])
        if (effect.do !== 'notifyGate') return effect
        return { ...effect, member: uncounted.get(effect.key)?.shift() ?? effect.member }
      })(ledger)
    },
  },
  {
    fault: 'members that have finished before the gate opens are not counted',
    caughtBy: 'ledger: a gate counts members that have already ended',
    isPlayed: true,
    of: (ledger) => {
      const renamed = new Map<string, string>()
      const name = (key: string, member: string) => `${member} of ${key}`
      return effects((effect) => {
        if (effect.do === 'openGate') {
          for (const member of effect.members) renamed.set(`${effect.key}/${member}`, name(effect.key, member))
          return { ...effect, members: effect.members.map((member) => name(effect.key, member)) }
        }
        if (effect.do !== 'notifyGate') return effect
        return { ...effect, member: renamed.get(`${effect.key}/${effect.member}`) ?? effect.member }
      })(ledger)
    },
  },
  {
    fault: 'an impossible gate waits forever',
    caughtBy: 'ledger: a gate that cannot be met frees its item immediately',
    isPlayed: true,
    of: effects((effect) =>
      effect.do === 'openGate' ? { ...effect, members: [...effect.members, 'nobody', 'no one', 'none'] } : effect,
    ),
  },
  {
    fault: 'a delay is ignored',
    caughtBy: 'ledger: a delayed item is not claimable before it is due',
    isPlayed: true,
    of: effects((effect) =>
      effect.do === 'enqueue' && effect.hold === undefined ? { ...effect, delayMs: 0 } : effect,
    ),
  },
  {
    fault: 'a retry comes back immediately',
    caughtBy: 'ledger: a retry comes back later, with its new attempt',
    isPlayed: true,
    of: effects((effect) => (effect.do === 'retry' ? { ...effect, delayMs: 0 } : effect)),
  },
  {
    fault: 'a retry forgets its attempt',
    caughtBy: 'ledger: a retry comes back later, with its new attempt',
    isPlayed: true,
    of: effects((effect) => (effect.do === 'retry' ? { ...effect, attempt: 1 } : effect)),
  },
  {
    fault: 'a release without a delay gets a new place',
    caughtBy: 'ledger: a release without a delay keeps its place',
    isPlayed: true,
    of: effects((effect) => (effect.do === 'release' ? { ...effect, delayMs: effect.delayMs ?? 0 } : effect)),
  },
  {
    fault: 'priority is ignored',
    caughtBy: 'ledger: claims by priority, then due time, then arrival',
    isPlayed: true,
    of: effects((effect) => (effect.do === 'enqueue' ? { ...effect, item: { ...effect.item, priority: 0 } } : effect)),
  },
  {
    fault: 'a claim takes one more than asked',
    caughtBy: 'ledger: claims never more than asked',
    isPlayed: true,
    of: (ledger) => ({
      claim: (ask) => ledger.claim({ ...ask, queues: ask.queues.map(({ queue, max }) => ({ queue, max: max + 1 })) }),
    }),
  },
  {
    fault: 'a lapsed lease is never freed',
    caughtBy: 'ledger: an item whose lease ran out is claimed again',
    isPlayed: true,
    of: (ledger) => ({ claim: (ask) => ledger.claim({ ...ask, leaseMs: 1e12 }) }),
  },
  {
    fault: 'what is claimed counts as running',
    caughtBy: 'ledger: a lease that lapses before anything ran is no crash',
    isPlayed: true,
    of: (ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        const held = reply.items.map(({ lease }) => ({ lease, running: true }))
        await ledger.extend(held, ask.leaseMs, { id: ask.worker, host: 'h', version: '1', types: [], queues: [] })
        return reply
      },
    }),
  },
  {
    fault: 'every heartbeat says that the handler runs',
    caughtBy: 'ledger: the last heartbeat says whether a lapse is a crash',
    isPlayed: true,
    of: (ledger) => ({
      extend: (held, leaseMs, me) =>
        ledger.extend(
          held.map((one) => ({ ...one, running: true })),
          leaseMs,
          me,
        ),
    }),
  },
  {
    fault: 'a handler that once ran is taken to run until its lease ends',
    caughtBy: 'ledger: the last heartbeat says whether a lapse is a crash',
    isPlayed: true,
    of: (ledger) => {
      const ran = new Set<string>()
      return {
        extend: (held, leaseMs, me) => {
          for (const { lease, running } of held) if (running) ran.add(lease.token)
          const still = held.map((one) => ({ ...one, running: ran.has(one.lease.token) }))
          return ledger.extend(still, leaseMs, me)
        },
      }
    },
  },
  {
    fault: 'what is born leased counts as running',
    caughtBy: 'ledger: an item born leased is no crash until a heartbeat says that it runs',
    isPlayed: true,
    of: (ledger) => ({
      commit: async (batch) => {
        const results = await ledger.commit(batch)
        const born = batch
          .flatMap(({ effects }) => effects)
          .flatMap((effect) => (effect.do === 'enqueue' ? [effect] : []))
        for (const { item, queue, leasedTo } of born) {
          if (leasedTo === undefined) continue
          const lease = { id: item.id, queue, token: leasedTo.token, fence: 1, until: 0 }
          const me = { id: leasedTo.worker, host: 'h', version: '1', types: [], queues: [] }
          await ledger.extend([{ lease, running: true }], leasedTo.leaseMs, me)
        }
        return results
      },
    }),
  },
  {
    fault: 'whatever is leased is shown as running',
    caughtBy: 'ledger: an item shows whether its handler ran at its last heartbeat',
    isPlayed: true,
    of: (ledger) => ({
      read: async (ids) =>
        (await ledger.read(ids)).map((view) => (view?.running === false ? { ...view, running: true } : view)),
    }),
  },
  {
    fault: 'rooms are ignored',
    caughtBy: 'ledger: a claim leaves what it has no room for in its place',
    isPlayed: true,
    of: (ledger) => ({ claim: ({ rooms: _, ...ask }) => ledger.claim(ask) }),
  },
  {
    fault: 'a room says only which types come, not how many',
    caughtBy: 'ledger: a room takes no more than it holds',
    isPlayed: true,
    of: (ledger) => ({
      claim: ({ rooms, ...ask }) =>
        ledger.claim(
          rooms === undefined
            ? ask
            : { ...ask, rooms: rooms.map(({ types, max }) => ({ types, max: max === 0 ? 0 : 1000 })) },
        ),
    }),
  },
  {
    fault: 'every type of a room has all of it',
    caughtBy: 'ledger: a room takes no more than it holds',
    isPlayed: true,
    of: (ledger) => ({
      claim: ({ rooms, ...ask }) =>
        ledger.claim(
          rooms === undefined
            ? ask
            : { ...ask, rooms: rooms.flatMap(({ types, max }) => types.map((type) => ({ types: [type], max }))) },
        ),
    }),
  },
  {
    fault: 'every queue of a claim has all the room',
    caughtBy: 'ledger: rooms are shared by the queues of a claim',
    isPlayed: true,
    of: (ledger) => ({
      claim: async (ask) => {
        const replies = []
        for (const one of ask.queues) replies.push(await ledger.claim({ ...ask, queues: [one] }))
        const last = replies.at(-1) ?? (await ledger.claim(ask))
        const crashed = replies.flatMap((reply) => reply.crashed ?? [])
        return {
          ...last,
          items: replies.flatMap(({ items }) => items),
          more: replies.some(({ more }) => more),
          ...(crashed.length === 0 ? {} : { crashed }),
        }
      },
    }),
  },
  {
    fault: 'what has room is searched for among the next few items only',
    caughtBy: 'ledger: an item without room hides nothing behind it',
    of: (ledger) => ({
      claim: async ({ rooms, ...ask }) => {
        const max = 500
        if (rooms === undefined) return ledger.claim(ask)
        const front = await ledger.claim({ ...ask, queues: ask.queues.map(({ queue }) => ({ queue, max })) })
        const types = new Map(rooms.flatMap((room) => room.types.map((type) => [type, room.max])))
        const isTaken = ({ envelope }: (typeof front.items)[number]) => (types.get(envelope.type) ?? 0) > 0
        const back = front.items.filter((one) => !isTaken(one))
        await ledger.commit(
          back.map(({ lease }) => ({ guard: { by: 'lease', lease }, effects: [{ do: 'release', id: lease.id }] })),
        )
        return { ...front, items: front.items.filter(isTaken), more: false }
      },
    }),
  },
  {
    fault: 'what has no room counts as more',
    caughtBy: 'ledger: says that there is more only of what has room',
    isPlayed: true,
    of: (ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        const max = ask.queues.length
        const rest = await ledger.inspect!.counts()
        const isLeft = rest.some(({ counts }) => (counts.waiting ?? 0) > 0)
        return { ...reply, more: reply.more || (max > 0 && isLeft) }
      },
    }),
  },
  {
    fault: 'with room for several types, one type comes after the other',
    caughtBy: 'ledger: items that have room come in the order of claim',
    of: (ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        if (ask.rooms === undefined) return reply
        const items = reply.items.toSorted((a, b) => a.envelope.type.localeCompare(b.envelope.type))
        return { ...reply, items }
      },
    }),
  },
  {
    fault: 'only claims that have room for everything free what lapsed',
    caughtBy: 'ledger: a claim frees what lapsed also where it has no room for it',
    of: (ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        if (ask.rooms === undefined) return reply
        const { crashed: _, ...rest } = reply
        return rest
      },
    }),
  },
  {
    fault: 'what has expired waits for room like the rest',
    caughtBy: 'ledger: an expired item is handed out whatever its type',
    isPlayed: true,
    of: (ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        if (ask.rooms === undefined) return reply
        const known = ask.rooms.flatMap(({ types, max }) => (max > 0 ? types : []))
        const isLate = ({ envelope: { type, deadline = Infinity } }: (typeof reply.items)[number]) =>
          deadline < reply.now && !known.includes(type)
        const back = reply.items.filter(isLate)
        await ledger.commit(
          back.map(({ lease }) => ({ guard: { by: 'lease', lease }, effects: [{ do: 'release', id: lease.id }] })),
        )
        return { ...reply, items: reply.items.filter((one) => !isLate(one)) }
      },
    }),
  },
  {
    fault: 'what has expired fills the whole claim',
    caughtBy: 'ledger: expired items leave room for live ones',
    of: (ledger) => ({
      claim: async (ask) => {
        if (ask.rooms === undefined) return ledger.claim(ask)
        // Four times as many expired ones in the place of the others.
        const from = ask.queues.map(({ queue, max }) => ({ queue, max: 4 * max }))
        const late = await ledger.claim({ ...ask, queues: from, rooms: [] })
        return late.items.length > 0 ? late : ledger.claim(ask)
      },
    }),
  },
  {
    fault: 'a put-back is counted as a lapse',
    caughtBy: 'ledger: a release spends neither attempt, lapse nor crash',
    isPlayed: true,
    of: (ledger) => {
      const released = new Map<string, number>()
      return {
        ...effects((effect) => {
          if (effect.do === 'release') released.set(effect.id, (released.get(effect.id) ?? 0) + 1)
          return effect
        })(ledger),
        claim: async (ask) => {
          const reply = await ledger.claim(ask)
          const items = reply.items.map((one) => ({ ...one, lapses: one.lapses + (released.get(one.lease.id) ?? 0) }))
          return { ...reply, items }
        },
      }
    },
  },
  {
    fault: 'an extension adds to the lease',
    caughtBy: 'ledger: extend moves the end of the lease to now + leaseMs',
    isPlayed: true,
    of: (ledger) => ({ extend: (held, leaseMs, me) => ledger.extend(held, leaseMs * 1.5, me) }),
  },
  {
    fault: 'an extension never reports a cancel',
    caughtBy: 'ledger: a heartbeat notifies the holder of an item of its cancel',
    isPlayed: true,
    of: (ledger) => ({
      extend: async (held, leaseMs, me) =>
        (await ledger.extend(held, leaseMs, me)).map((answer) => (answer === 'cancelled' ? 'held' : answer)),
    }),
  },
  {
    fault: 'the fence does not rise',
    caughtBy: 'ledger: an item whose lease ran out is claimed again',
    isPlayed: true,
    of: (ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        const same = (lease: Lease): Lease => ({ ...lease, fence: 1 })
        return { ...reply, items: reply.items.map((one) => ({ ...one, lease: same(one.lease) })) }
      },
    }),
  },
  {
    fault: 'ended items are kept forever',
    caughtBy: 'ledger: an ended item is removed after its retention',
    isPlayed: true,
    of: effects((effect) =>
      effect.do === 'complete' || effect.do === 'deadLetter' ? { ...effect, keepMs: Number.POSITIVE_INFINITY } : effect,
    ),
  },
  {
    fault: 'a pause is forgotten',
    caughtBy: 'ledger: a paused queue hands out nothing until it is resumed',
    isPlayed: true,
    of: effects((effect) => (effect.do === 'pause' ? undefined : effect)),
  },
  {
    fault: 'resuming the queue resumes its types',
    caughtBy: 'ledger: a pause of the queue and one of the type are two',
    of: (ledger) => ({
      commit: (batch) =>
        ledger.commit(
          batch.map(({ guard, effects }) => ({
            guard,
            effects: effects.flatMap((effect): Effect[] =>
              effect.do === 'resume' ? [effect, { ...effect, what: 'type', name: 'p' }] : [effect],
            ),
          })),
        ),
    }),
  },
  {
    fault: 'a schedule fires for every process',
    caughtBy: 'ledger: a schedule fires once',
    isPlayed: true,
    of: insists(({ guard, effects }, { kind }) =>
      guard.by === 'schedule' && kind === 'stale' ? { guard: { by: 'none' }, effects } : undefined,
    ),
  },
  {
    fault: 'a status guard always holds',
    caughtBy: 'ledger: a status guard holds only in that status',
    isPlayed: true,
    of: insists(({ guard, effects }, { kind }) =>
      guard.by === 'status' && kind === 'stale' ? { guard: { by: 'none' }, effects } : undefined,
    ),
  },
  {
    fault: 'a redrive keeps its attempt number',
    caughtBy: 'ledger: a redriven item is pending again, from its first attempt',
    isPlayed: true,
    of: (ledger) => ({
      claim: async (ask) => {
        const reply = await ledger.claim(ask)
        const later = (attempt: number, fence: number) => (fence > 3 ? 2 : attempt)
        const items = reply.items.map((one) => ({
          ...one,
          envelope: { ...one.envelope, attempt: later(one.envelope.attempt, one.lease.fence) },
        }))
        return { ...reply, items }
      },
    }),
  },
  {
    fault: 'watchers are not notified',
    caughtBy: 'ledger: a watcher registered later is notified too',
    of: () => ({ watch: async () => undefined }),
  },
  {
    fault: 'wake-ups carry no due time',
    caughtBy: 'ledger: wake-ups carry the due time',
    of: (ledger) => ({ onReady: (wake) => ledger.onReady((queue) => wake(queue)) }),
  },
  {
    fault: 'a claim on nothing says that there is more',
    caughtBy: 'ledger: says when there is more',
    isPlayed: true,
    of: (ledger) => ({ claim: async (ask) => ({ ...(await ledger.claim(ask)), more: true }) }),
  },
  {
    fault: 'one item that is too large fails its whole batch',
    caughtBy: 'ledger: an item that is too large is refused and its neighbours are applied',
    of: (ledger) => ({
      commit: async (batch) => {
        const refused = (await ledger.commit(batch.filter(isLarge))).find(({ kind }) => kind === 'refused')
        return refused === undefined ? ledger.commit(batch) : batch.map(() => refused)
      },
    }),
  },
  {
    fault: 'unknown fields of the envelope are lost',
    caughtBy: 'ledger: an enqueued item is claimed with everything it carried',
    of: effects((effect) => {
      if (effect.do !== 'enqueue') return effect
      const { 'x-unknown': _, ...item } = effect.item
      return { ...effect, item: item as typeof effect.item }
    }),
  },
]

/** A ledger whose answers to people are a little off. */
function asked(change: (inspect: Required<Inspect>) => Partial<Inspect>): (ledger: Ledger) => Partial<Ledger> {
  return (ledger) => {
    const inspect = ledger.inspect as Required<Inspect>
    return { inspect: { ...inspect, ...change(inspect) } }
  }
}

/** Faults in what people can ask, and in what they can free. */
export const insightMutants: readonly LedgerMutant[] = [
  {
    fault: 'only the first filter of a query counts',
    caughtBy: 'ledger: filters narrow a list together',
    of: asked(({ list }) => ({
      list: ({ class: of, tag, ...query }) =>
        list({
          ...query,
          ...(query.fingerprint !== undefined || of === undefined ? {} : { class: of }),
          ...(tag && { tag }),
        }),
    })),
  },
  {
    fault: '`before` is ignored',
    caughtBy: 'ledger: filters narrow a list together',
    of: asked(({ list }) => ({ list: ({ before: _, ...query }) => list(query) })),
  },
  {
    fault: 'a list ends with its first page when a filter leaves it empty',
    caughtBy: 'ledger: filters narrow a list together',
    of: asked(({ list }) => ({
      list: async (query) => {
        const { items, next } = await list(query)
        return next === undefined || items.length < query.limit || query.limit === 3 ? { items } : { items, next }
      },
    })),
  },
  {
    fault: 'a count counts one page',
    caughtBy: 'ledger: counts what a query matches',
    of: asked(({ list }) => ({ count: async (query) => (await list({ ...query, limit: 7 })).items.length })),
  },
  {
    fault: 'what was counted once is counted forever',
    caughtBy: 'ledger: statistics leave expired items out',
    of: asked(({ count }) => {
      const known = new Map<string, number>()
      return {
        count: async (query) => {
          const key = JSON.stringify(query)
          known.set(key, Math.max(known.get(key) ?? 0, await count(query)))
          return known.get(key)!
        },
      }
    }),
  },
  {
    fault: 'the window of a flow is ignored',
    caughtBy: 'ledger: reports throughput by queue and type',
    of: asked(({ throughput }) => ({ throughput: () => throughput(1e12) })),
  },
  {
    fault: 'cancelled items are counted as failed',
    caughtBy: 'ledger: reports throughput by queue and type',
    of: asked(({ throughput, list }) => ({
      throughput: async (windowMs) => {
        const cancelled = (await list({ state: 'cancelled', limit: 100 })).items.length
        return (await throughput(windowMs)).map((one) => ({
          ...one,
          failed: one.failed > 0 ? one.failed + cancelled : 0,
        }))
      },
    })),
  },
  {
    fault: 'the oldest that waits is the first in the order of claim',
    caughtBy: 'ledger: reports throughput by queue and type',
    of: asked(({ throughput, list }) => ({
      throughput: async (windowMs) => {
        const { items } = await list({ state: 'waiting', limit: 100 })
        const [first] = items.toSorted((a, b) => b.envelope.priority - a.envelope.priority)
        return (await throughput(windowMs)).map((one) =>
          one.oldestDueAt === undefined || first?.dueAt === undefined ? one : { ...one, oldestDueAt: first.dueAt },
        )
      },
    })),
  },
  {
    fault: 'retrying items are in no group of failures',
    caughtBy: 'ledger: groups failures by their fingerprint',
    of: asked(({ failures }) => ({
      failures: async (limit) => (await failures(limit)).map((group) => ({ ...group, retrying: 0 })),
    })),
  },
  {
    fault: 'the smallest groups come first',
    caughtBy: 'ledger: groups failures by their fingerprint',
    of: asked(({ failures }) => ({
      failures: async (limit) => (await failures(1000)).toReversed().slice(0, limit),
    })),
  },
  {
    fault: 'the sample of a group is any of them',
    caughtBy: 'ledger: groups failures by their fingerprint',
    of: asked(({ failures, list }) => ({
      failures: async (limit) =>
        Promise.all(
          (await failures(limit)).map(async (group) => {
            const { items } = await list({ fingerprint: group.fingerprint, type: group.type, limit: 100 })
            const first = items.toSorted((a, b) => (a.envelope.id < b.envelope.id ? -1 : 1))[0]
            return { ...group, sample: { id: first?.envelope.id ?? '', error: first?.error ?? '' } }
          }),
        ),
    })),
  },
  {
    fault: 'a ledger sees no stuck items',
    caughtBy: 'ledger: finds stuck items',
    of: asked(() => ({ stuckItems: async () => ({ items: [] }) })),
  },
  {
    fault: 'what a gate holds is called stuck',
    caughtBy: 'ledger: finds stuck items',
    of: asked(({ list }) => ({
      stuckItems: async ({ limit }) => {
        const { items } = await list({ limit: 1000 })
        return {
          items: items.filter(({ status, dueAt }) => status === 'pending' && dueAt === undefined).slice(0, limit),
        }
      },
    })),
  },
  {
    fault: 'the settings of a worker are those that it reported first',
    caughtBy: 'ledger: stores the settings of a worker',
    of: (ledger) => {
      const first = new Map<string, WorkerRecord>()
      return {
        extend: (held, leaseMs, me) => {
          if (!first.has(me.id)) first.set(me.id, me)
          return ledger.extend(held, leaseMs, first.get(me.id)!)
        },
      }
    },
  },
  {
    fault: 'a release of a pending item changes nothing',
    caughtBy: 'ledger: a scheduled or retrying item is made ready by a release',
    of: effects((effect, { guard }) => (effect.do === 'release' && guard.by === 'status' ? undefined : effect)),
  },
  {
    fault: 'a release without a delay leaves the hold of a gate',
    caughtBy: 'ledger: an item that a gate holds is made ready by a release, once',
    of: effects((effect, { guard }) =>
      effect.do === 'release' && guard.by === 'status'
        ? { ...effect, delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: `gate of ${effect.id}` } }
        : effect,
    ),
  },
  {
    fault: 'a lease that was taken away by a release is thought to have settled',
    caughtBy: 'ledger: a release takes an item from the worker that runs it',
    of: answers((result, { guard }) =>
      guard.by === 'lease' && result.kind === 'stale' ? { kind: 'repeated', id: guard.lease.id } : result,
    ),
  },
]

const isLarge = ({ effects }: Settlement) => effects.some((e) => e.do === 'enqueue' && e.item.input.length > 500_000)
