import type { At } from '../../core/time.js'
import type { Ledger } from '../../ports/ledger.js'
import type { CommitResult, Settlement } from '../../ports/settlement.js'
import { copied } from './copied.js'
import type { History } from './history.js'
import type { Wire } from './wire.js'

/** A backend's ledger as one process sees it from afar: every call is sent, happens, and is answered, or not. */
export function farLedger(near: Ledger, wire: Wire, history: History): Ledger {
  return {
    atomic: near.atomic,
    limits: near.limits,
    claim: (ask) =>
      wire.call(
        'claim',
        async () => {
          const reply = await near.claim(ask)
          for (const item of reply.items) history.leased(item, wire.process)
          return reply
        },
        {
          asked: ask.from.map(({ queue, max }) => `${queue}:${max}`).join(' '),
          answered: ({ items }) => items.map(({ lease }) => `${lease.id}#${lease.fence}`).join(' '),
          isRoutine: true,
        },
      ),
    ...(near.begin === undefined ? {} : { begin: (leases) => wire.call('begin', () => near.begin?.(leases)) }),
    extend: (held, leaseMs, me) => {
      const sent = copied(held)
      return wire.call('extend', () => near.extend(sent, leaseMs, me), {
        asked: sent.map(({ lease }) => `${lease.id}#${lease.fence}`).join(' '),
        answered: (words) => words.join(' '),
      })
    },
    ...(near.leave === undefined ? {} : { leave: (worker) => wire.call('leave', () => near.leave?.(worker)) }),
    commit: (batch) => {
      const sent = copied(batch)
      for (const settlement of sent) history.outcomeSent(settlement)
      return wire.call(
        'commit',
        async () => {
          const results = await near.commit(sent)
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
    read: (ids) => wire.call('read', () => near.read(ids), { asked: ids.join(' ') }),
    groups: (ids) => wire.call('groups', () => near.groups(ids), { asked: ids.join(' ') }),
    ...(near.schedules === undefined
      ? {}
      : { schedules: (names) => wire.call('schedules', () => near.schedules!(names), { asked: names.join(' ') }) }),
    watch: (inbox, what) =>
      wire.call('watch', () => near.watch(inbox, what), { asked: [...what.ids, ...what.groups].join(' ') }),
    onReady: (wake) =>
      wire.listen(() =>
        near.onReady((queue, dueAt?: At) => {
          wire.nudge(`${queue} has work${dueAt === undefined ? '' : ' later'}`, () => wake(queue, dueAt))
        }),
      ),
    onInbox: (inbox, hear) =>
      wire.listen(() =>
        near.onInbox(inbox, (what) => {
          const sent = copied(what)
          wire.nudge(`inbox: ${[...sent.ids, ...sent.groups].join(' ')}`, () => hear(sent))
        }),
      ),
    ...(near.paused === undefined ? {} : { paused: (among) => wire.call('paused', () => near.paused!(among)) }),
    ...(near.inspect === undefined ? {} : { inspect: farInspect(near.inspect, wire) }),
  }
}

function farInspect(near: NonNullable<Ledger['inspect']>, wire: Wire): NonNullable<Ledger['inspect']> {
  return {
    list: (query) => wire.call('list', () => near.list(query)),
    summaries: (ids) => wire.call('summaries', () => near.summaries(ids), { asked: ids.join(' ') }),
    openCounts: (ids) => wire.call('open counts', () => near.openCounts(ids), { asked: ids.join(' ') }),
    attempts: (id) => wire.call('attempts', () => near.attempts(id)),
    counts: () => wire.call('counts', () => near.counts()),
    workers: () => wire.call('workers', () => near.workers()),
    ...(near.schedules === undefined ? {} : { schedules: () => wire.call('schedules', () => near.schedules!()) }),
    input: (id) => wire.call('input', () => near.input(id)),
    gate: (key) => wire.call('gate', () => near.gate(key)),
    log: (limit) => wire.call('log', () => near.log(limit)),
    flow: (windowMs) => wire.call('flow', () => near.flow(windowMs)),
    failures: (limit) => wire.call('failures', () => near.failures(limit)),
    count: (query) => wire.call('count', () => near.count(query)),
    strays: (ask) => wire.call('strays', () => near.strays(ask)),
  }
}

function settlementText({ guard, effects }: Settlement): string {
  const of =
    guard.by === 'lease' ? `${guard.lease.id}#${guard.lease.fence}` : guard.by === 'absent' ? `+${guard.id}` : guard.by
  const words = effects.flatMap((effect) => {
    if (effect.do === 'recordAttempt' || effect.do === 'openGroup' || effect.do === 'closeGroup') return []
    return [effect.do === 'push' ? `push ${effect.item.id}` : effect.do]
  })
  return `${of} ${words.join(' ')}`
}

function resultText(result: CommitResult): string {
  if (result.kind !== 'applied' || result.closed.length === 0) return result.kind
  return `applied, closing ${result.closed.map(({ groupId }) => groupId).join(' ')}`
}
