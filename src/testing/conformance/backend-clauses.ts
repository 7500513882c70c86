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

/** The code that a call rejects with; undefined: it does not. */
async function codeOf(call: () => unknown): Promise<unknown> {
  try {
    await call()
    return undefined
  } catch (error) {
    return (error as { readonly code?: unknown }).code
  }
}

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
    starts: queue.start !== undefined,
    'dead letter list': queue.deadLetters !== undefined,
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
  'backend: refuses bodies that are no envelopes once work is native': {
    law: 'On a queue in native use push adopts envelopes and refuses other bodies with NOT_AN_ENVELOPE; a plain pop is refused.',
    hint: 'whether push, pushMany and redrive read the mode of the backend.',
    needs: ['native ledger'],
    async run({ backend }) {
      const { queue } = backend
      const owned = ownedBy(backend, [])
      holds('open' in owned, 'the backend has a ledger')
      const ledger = owned.open({ prefix: 'work:' })
      const claim = () => ledger.claim({ queues: [{ queue: 'default', max: 5 }], leaseMs: 60_000, worker: 'w' })
      await claim()
      const envelope = JSON.stringify({ id: 'i-1', type: 'mail', groupId: 'i-1', input: '1' })
      same(await codeOf(() => queue.push('just a text')), 'NOT_AN_ENVELOPE', 'the refusal of a text')
      same(await codeOf(() => queue.push('{"id":1}')), 'NOT_AN_ENVELOPE', 'the refusal of another object')
      const both = [{ body: envelope }, { body: 'just a text' }]
      same(await codeOf(() => queue.pushMany?.(both)), 'NOT_AN_ENVELOPE', 'the refusal of a list with one text in it')
      same(await queue.size?.(), 0, 'the size after what was refused')
      await queue.push(envelope)
      same(
        (await claim()).items.map(({ envelope }) => envelope.id),
        ['i-1'],
        'the items that were adopted',
      )
      same(await codeOf(() => queue.pop(1, 60_000)), 'WRONG_MODE', 'the refusal of a plain pop')
    },
  },
  'backend: dead-letters a body that was accepted before work became native': {
    law: 'A body that is no envelope and was pushed before the first native use is reported and kept as a dead letter.',
    hint: 'what a claim does with the bodies that it cannot read.',
    needs: ['native ledger', 'dead letter list'],
    async run({ backend }) {
      await backend.queue.push('just a text')
      const owned = ownedBy(backend, [])
      holds('open' in owned, 'the backend has a ledger')
      const ledger = owned.open({ prefix: 'work:' })
      const reply = await ledger.claim({ queues: [{ queue: 'default', max: 5 }], leaseMs: 60_000, worker: 'w' })
      same(reply.unreadable, [{ queue: 'default', body: 'just a text' }], 'what was reported')
      const sink = present(backend.queue.deadLetters, 'Queue.deadLetters')
      const [letter] = await sink.list({ limit: 10 })
      same(letter?.body, 'just a text', 'the body of the dead letter')
      holds(letter?.error.includes('NOT_AN_ENVELOPE') === true, `the error says why (${letter?.error})`)
      same(await codeOf(() => sink.redrive([letter!])), 'NOT_AN_ENVELOPE', 'the refusal of a redrive')
      same(await sink.count(), 1, 'the letters after the refusal')
    },
  },
  'backend: a line in the log of actions decides no mode': {
    law: 'A commit of nothing but log lines leaves open whether the backend is used natively or by its plain ports.',
    hint: 'whether the commit claims the native mode before it looks at its effects.',
    needs: ['native ledger', 'inspect'],
    async run({ backend, time }) {
      const owned = ownedBy(backend, [])
      holds('open' in owned, 'the backend has a ledger')
      const ledger = owned.open({ prefix: 'work:' })
      await ledger.commit([{ guard: { by: 'none' }, effects: [{ do: 'log', who: 'ann', why: 'why', what: 'what' }] }])
      await backend.queue.push('just a text')
      same(await bodies(backend.queue, time), ['just a text'], 'the bodies popped')
      same(
        (await ledger.inspect?.log(10))?.map(({ what }) => what),
        ['what'],
        'the log',
      )
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
