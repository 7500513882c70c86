import { isWellFormed, toWellFormed } from '../../core/text/well-formed.js'
import type { Ledger } from '../../ports/ledger.js'
import { isOnlyLogged } from '../shared/is-only-logged.js'
import { Claims, MAX_LEASES } from './claim.js'
import { commitBatch } from './commit.js'
import type { RedisContext } from './context.js'
import { inspectOn } from './inspect.js'
import { modeGuard } from './mode.js'
import type { Notifier } from './notify.js'
import { groupFrom, inSteps, scheduleFrom, viewFrom } from './read.js'
import { Swept } from './retention.js'
import { workerText } from './stored-texts.js'
import { msWord } from './time.js'

/** The native ledger: one script for each verb. */
export function redisLedger(context: RedisContext, notifier: Notifier): Ledger {
  const opened = modeGuard(context, 'native')
  const swept = new Swept(context)
  const claims = new Claims(context, swept)
  return {
    atomic: true,
    limits: Object.freeze({ maxItemBytes: context.maxItemBytes, maxDelayMs: Number.POSITIVE_INFINITY }),
    async claim(ask) {
      // A claim from no queue only asks for the time.
      if (ask.queues.length > 0) await opened()
      for (const { queue } of ask.queues) notifier.serves(queue)
      return claims.claim(ask)
    },
    async extend(held, leaseMs, me) {
      await opened()
      const head = [msWord(leaseMs) || '0', me.id, workerText(me)]
      let answers = ''
      // At least once: a worker that holds nothing renews its record, too.
      for (let from = 0; from === 0 || from < held.length; from += MAX_LEASES) {
        const words: (string | number)[] = [...head]
        for (const { lease, running, progress } of held.slice(from, from + MAX_LEASES)) {
          // The engine has checked the size and reported it; here it only must not pile up.
          const isKept = progress !== undefined && progress.length <= context.maxItemBytes
          words.push(lease.id, lease.token, running ? 1 : 0, isKept ? `=${toWellFormed(progress)}` : '')
        }
        answers += (await context.run('lease', words)) as string
      }
      return held.map((_, i) => (answers[i] === 'h' ? 'held' : answers[i] === 'c' ? 'cancelled' : 'lost'))
    },
    async removeWorker(worker) {
      await opened()
      await context.run('leave', [worker])
    },
    async commit(batch) {
      if (!isOnlyLogged(batch)) await opened()
      return commitBatch(context, swept, batch)
    },
    async read(ids) {
      await opened()
      const rows = await inSteps(ids, (some) => context.run('read', [1, ...some]))
      return rows.map((row, i) => (row === null || !isWellFormed(ids[i]!) ? undefined : viewFrom(row as never)))
    },
    async groups(ids) {
      await opened()
      const rows = await inSteps(ids, (some) => context.run('groups-read', [1, ...some]))
      return rows.map((row, i) => (isWellFormed(ids[i]!) ? groupFrom(row as never) : undefined))
    },
    async watch(inbox, { itemIds, groupIds }) {
      await opened()
      await inSteps(itemIds, (some) => context.run('watch', [inbox, some.length, ...some]))
      await inSteps(groupIds, (some) => context.run('watch', [inbox, 0, ...some]))
    },
    async schedules(names) {
      if (names.length === 0) return []
      const found = (await context.run('facts', ['schedules', ...names])) as readonly (string | null)[]
      return names.map((_, i) => scheduleFrom(found[i]))
    },
    async paused() {
      const keys = ((await context.run('facts', ['paused'])) as readonly string[]).toSorted()
      const named = (what: string) => keys.filter((key) => key.startsWith(what)).map((key) => key.slice(what.length))
      return { queues: named('queue:'), types: named('type:') }
    },
    onReady: (wake) => notifier.onReady(wake),
    onInbox: (inbox, onNotification) => notifier.onInbox(inbox, onNotification),
    inspect: inspectOn(context, (removed) => swept.removed(removed, false)),
  }
}
