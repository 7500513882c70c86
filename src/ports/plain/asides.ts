import type { At } from '../../core/time.js'
import { unreachable } from '../../core/unreachable.js'
import type { ScheduleRecord } from '../ledger.js'
import { allDone } from './call.js'
import { type Desk, keptFor } from './desk.js'
import type { Aside } from './parts.js'

/** What a settlement says beside its item: marks and records that are simply written, and may be written again. */
export async function doAsides(desk: Desk, effects: readonly Aside[]): Promise<void> {
  await allDone(effects.map((effect) => doAside(desk, effect)))
}

async function doAside(desk: Desk, effect: Aside): Promise<void> {
  const { keys, store } = desk
  switch (effect.do) {
    case 'schedule':
      return store.set(keys.schedule(effect.name), writeSchedule(effect.spec, effect.nextAt))
    case 'cancel':
      await store.set(keys.cancel(effect.id), effect.reason, keptFor(desk))
      desk.outbox.tell([{ kind: 'cancel', id: effect.id }])
      return
    case 'pause':
      return store.set(keys.pause(effect.what, effect.name), '1')
    case 'resume':
      await store.remove(keys.pause(effect.what, effect.name))
      for (const queue of desk.queues.keys()) desk.bell.ring(queue)
      return
    default:
      unreachable(effect)
  }
}

export const writeSchedule = (spec: string, nextAt: At): string => JSON.stringify({ spec, nextAt })

export function readSchedule(text: string | undefined): ScheduleRecord | undefined {
  if (text === undefined) return undefined
  try {
    const { spec, nextAt } = (JSON.parse(text) ?? {}) as Partial<ScheduleRecord>
    return typeof nextAt === 'number' && typeof spec === 'string' ? { spec, nextAt } : undefined
  } catch {
    return undefined
  }
}

export async function readScheduleOf({ store, keys }: Desk, name: string): Promise<ScheduleRecord | undefined> {
  return readSchedule(await store.get(keys.schedule(name)))
}
