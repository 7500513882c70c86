import type { At } from '../../core/time/time.js'
import type { Ledger } from '../../ports/ledger.js'
import type { CommitResult, Settlement } from '../../ports/settlement.js'
import { copied } from './copied.js'
import type { History } from './history.js'
import type { Wire } from './wire.js'

/** A backend's ledger as one process sees it over its wire: every call is sent, happens, and is answered, or not. */
export function remoteLedger(shared: Ledger, wire: Wire, history: History): Ledger {
  return {
    atomic: shared.atomic,
    limits: shared.limits,
    claim: (ask) =>
      wire.call(
        'claim',
        async () => {
          const reply = await shared.claim(ask)
          for (const item of reply.items) history.leased(item, wire.process)
          return reply
        },
        {
          asked: ask.queues.map(({ queue, max }) => `${queue}:${max}`).join(' '),
          answered: ({ items }) => items.map(({ lease }) => `${lease.id}#${lease.fence}`).join(' '),
          isRoutine: true,
        },
      ),
    ...(shared.markStarted === undefined
      ? {}
      : { markStarted: (leases) => wire.call('markStarted', () => shared.markStarted?.(leases)) }),
    extend: (held, leaseMs, me) => {
      const sent = copied(held)
      return wire.call('extend', () => shared.extend(sent, leaseMs, me), {
        asked: sent.map(({ lease }) => `${lease.id}#${lease.fence}`).join(' '),
        answered: (words) => words.join(' '),
      })
    },
    ...(shared.removeWorker === undefined
      ? {}
      : { removeWorker: (worker) => wire.call('removeWorker', () => shared.removeWorker?.(worker)) }),
    commit: (batch) => {
      const sent = copied(batch)
      for (const settlement of sent) history.outcomeSent(settlement)
      return wire.call(
        'commit',
        async () => {
          const results = await shared.commit(sent)
          results.forEach((result, i) => {
            history.committed(sent[i]!, result)
          })
          return results
        },
        {
          asked: sent.map(settlementText).join('; '),
          answered: (results) => results.map(resultText).join('; '),
          mayRepeat: true,
        },
      )
    },
    read: (ids) => wire.call('read', () => shared.read(ids), { asked: ids.join(' ') }),
    groups: (ids) => wire.call('groups', () => shared.groups(ids), { asked: ids.join(' ') }),
    ...(shared.schedules === undefined
      ? {}
      : { schedules: (names) => wire.call('schedules', () => shared.schedules!(names), { asked: names.join(' ') }) }),
    watch: (inbox, what) =>
      wire.call('watch', () => shared.watch(inbox, what), { asked: [...what.itemIds, ...what.groupIds].join(' ') }),
    onReady: (wake) =>
      wire.listen(() =>
        shared.onReady((queue, dueAt?: At) => {
          wire.notify(`${queue} has work${dueAt === undefined ? '' : ' later'}`, () => wake(queue, dueAt))
        }),
      ),
    onInbox: (inbox, hear) =>
      wire.listen(() =>
        shared.onInbox(inbox, (what) => {
          const sent = copied(what)
          wire.notify(`inbox: ${[...sent.itemIds, ...sent.groupIds].join(' ')}`, () => hear(sent))
        }),
      ),
    ...(shared.paused === undefined ? {} : { paused: (among) => wire.call('paused', () => shared.paused!(among)) }),
    ...(shared.inspect === undefined ? {} : { inspect: remoteInspect(shared.inspect, wire) }),
  }
}

function remoteInspect(shared: NonNullable<Ledger['inspect']>, wire: Wire): NonNullable<Ledger['inspect']> {
  return {
    list: (query) => wire.call('list', () => shared.list(query)),
    summaries: (ids) => wire.call('summaries', () => shared.summaries(ids), { asked: ids.join(' ') }),
    idsStartingWith: (prefix, limit) =>
      wire.call('ids starting with', () => shared.idsStartingWith(prefix, limit), { asked: prefix }),
    openCounts: (ids) => wire.call('open counts', () => shared.openCounts(ids), { asked: ids.join(' ') }),
    attempts: (id) => wire.call('attempts', () => shared.attempts(id)),
    counts: () => wire.call('counts', () => shared.counts()),
    workers: () => wire.call('workers', () => shared.workers()),
    ...(shared.schedules === undefined ? {} : { schedules: () => wire.call('schedules', () => shared.schedules!()) }),
    input: (id) => wire.call('input', () => shared.input(id)),
    gate: (key) => wire.call('gate', () => shared.gate(key)),
    log: (limit) => wire.call('log', () => shared.log(limit)),
    throughput: (windowMs) => wire.call('throughput', () => shared.throughput(windowMs)),
    failures: (limit) => wire.call('failures', () => shared.failures(limit)),
    count: (query) => wire.call('count', () => shared.count(query)),
    stuckItems: (ask) => wire.call('stuckItems', () => shared.stuckItems(ask)),
  }
}

function settlementText({ guard, effects }: Settlement): string {
  const of =
    guard.by === 'lease' ? `${guard.lease.id}#${guard.lease.fence}` : guard.by === 'absent' ? `+${guard.id}` : guard.by
  const words = effects.flatMap((effect) => {
    if (effect.do === 'recordAttempt' || effect.do === 'joinGroup' || effect.do === 'leaveGroup') return []
    return [effect.do === 'enqueue' ? `enqueue ${effect.item.id}` : effect.do]
  })
  return `${of} ${words.join(' ')}`
}

function resultText(result: CommitResult): string {
  if (result.kind !== 'applied' || result.closed.length === 0) return result.kind
  return `applied, closing ${result.closed.map(({ groupId }) => groupId).join(' ')}`
}
