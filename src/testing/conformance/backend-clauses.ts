import { ownedBy } from '../../ports/find-ledger.js'
import type { Backend, Queue } from '../../ports/ports.js'
import type { Capability } from './capability.js'
import { holds, present, same } from './check.js'
import { clausesOn } from './clause.js'
import type { TestTime } from './time.js'

/** What a clause on a whole backend gets. */
export interface BackendBench {
  readonly backend: Backend
  readonly time: TestTime
  readonly without: readonly Capability[]
}

const bodies = async (queue: Queue, time: TestTime) => (await queue.pop(100, time.ms(60))).map((pulled) => pulled.body)

const named = ({ backend }: BackendBench, name: string): Queue => present(backend.named, 'Backend.named')(name)

/** Capabilities that can be seen on the objects; the others can only be tried, and their clauses do. */
function visible({ backend }: BackendBench): Readonly<Partial<Record<Capability, boolean>>> {
  const { queue, store } = backend
  const owned = ownedBy(backend, [])
  const ledger = 'open' in owned ? owned.open({ prefix: 'work:' }) : undefined
  return {
    size: queue.size !== undefined,
    deadLetter: queue.deadLetter !== undefined,
    pushMany: queue.pushMany !== undefined,
    ackMany: queue.ackMany !== undefined,
    heartbeatMany: queue.heartbeatMany !== undefined,
    delete: store.delete !== undefined,
    increment: store.increment !== undefined,
    incrementOnce: store.incrementOnce !== undefined,
    compareAndSet: store.compareAndSet !== undefined,
    getMany: store.getMany !== undefined,
    setMany: store.setMany !== undefined,
    'named queues': backend.named !== undefined,
    'native ledger': ledger !== undefined,
    ...(ledger === undefined ? {} : { inspect: ledger.inspect !== undefined }),
  }
}

/** The obligations of `Backend`: three ports made together. */
export const backendClauses = clausesOn<BackendBench>()({
  'backend: has exactly the capabilities it is said to have': {
    law: 'The `without` list is true: those capabilities are absent, and all others are there.',
    hint: 'the list given as `without`, and the members of the ports.',
    async run(bench) {
      for (const [name, isThere] of Object.entries(visible(bench)) as [Capability, boolean][])
        if (bench.without.includes(name))
          holds(!isThere, `"${name}" is absent, as \`without\` says (it is there: take it off the list)`)
        else holds(isThere, `"${name}" is there (if it is meant to be absent, add it to \`without\`)`)
    },
  },
  'backend: a spread carries the three plain ports and nothing more': {
    law: 'Everything beyond the three ports is non-enumerable: { ...backend } must not carry what no longer holds.',
    hint: 'how close, named and the native ledger are defined on the object.',
    needs: ['native ledger'],
    async run({ backend }) {
      same(Object.keys(backend).toSorted(), ['pubsub', 'queue', 'store'], 'the enumerable members of the backend')
      const copy: Backend = { ...backend, store: { ...backend.store } }
      holds(!('open' in ownedBy(copy, [])), 'a backend whose store was copied has no native ledger')
      holds(!('open' in ownedBy({ ...backend, queue: { ...backend.queue } }, [])), 'nor one whose queue was copied')
    },
  },
  'backend: the native ledger is found by the very ports it belongs to': {
    law: 'The ports of one backend, default and named queues alike, lead to its own ledger.',
    hint: 'the set of queues in what the store owns: named() adds to it.',
    needs: ['native ledger'],
    async run({ backend }) {
      const owned = ownedBy(backend, backend.named === undefined ? [] : [backend.named('bulk')])
      holds('open' in owned, 'the ledger is found')
      same(owned.queues.get(backend.queue), 'default', 'the name of the default queue')
      if (backend.named !== undefined)
        same(owned.queues.get(backend.named('bulk')), 'bulk', 'the name of a named queue')
    },
  },
  'backend: named queues are separate': {
    law: 'A body pushed to one queue is popped from that queue only, whatever the names.',
    hint: 'whether the name is part of the key of every body, lease and dedupe key.',
    needs: ['named queues'],
    async run(bench) {
      const { backend, time } = bench
      const queues = [backend.queue, named(bench, 'bulk'), named(bench, 'BULK'), named(bench, "it's {odd}")]
      for (const [i, queue] of queues.entries()) await queue.push(`body ${i}`, { dedupeKey: 'same in all' })
      for (const [i, queue] of queues.entries()) same(await bodies(queue, time), [`body ${i}`], `bodies of queue ${i}`)
    },
  },
  'backend: one name is one queue': {
    law: 'named(x) twice leads to the same queue, and the name of the default queue is `default`.',
    hint: 'whether named() makes a new queue each time.',
    needs: ['named queues'],
    async run(bench) {
      const { backend, time } = bench
      await named(bench, 'bulk').push('a')
      same(await bodies(named(bench, 'bulk'), time), ['a'], 'bodies popped through a second object of that name')
      await backend.queue.push('b')
      same(await bodies(named(bench, 'default'), time), ['b'], 'bodies of the default queue, popped by its name')
    },
  },
  'backend: a named queue keeps its own leases and delays': {
    law: 'A named queue is a queue: it leases, reclaims, delays and acks as the default one does.',
    hint: 'whether reclaim and promotion cover all queues or only the default one.',
    needs: ['named queues'],
    async run(bench) {
      const { time } = bench
      const queue = named(bench, 'bulk')
      await queue.push('a')
      await queue.push('later', { delay: time.ms(3) })
      const [first] = await queue.pop(5, time.ms(2))
      same(first?.body, 'a', 'the first body')
      await time.pass(time.ms(4))
      const again = await queue.pop(5, time.ms(60))
      same(again.map((pulled) => pulled.body).toSorted(), ['a', 'later'], 'bodies after a lapse and a delay')
      for (const pulled of again) await queue.ack(pulled)
      same(await bodies(queue, time), [], 'bodies after the acks')
    },
  },
})
