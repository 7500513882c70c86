import { setTimeout as sleep } from 'node:timers/promises'
import { BYTES } from '../compare/plan.js'
import type { Ground } from '../ground.js'
import { ContenderProcess } from '../remote-contender.js'
import { closed, contendersOn, pidOf } from './axes.js'
import type { Amounts } from './sizes.js'

/** What one contender takes while it does nothing. */
export interface AtRest {
  readonly name: string
  /** Shares of a core, in percent, of an idle worker's process and of its server. */
  readonly idleClient: number
  readonly idleServer?: number
  /** Bytes for an item, as they were left, and once maintenance has given back what is stored no more. In memory: of the heap. */
  readonly pending: number
  readonly pendingCompact?: number
  readonly ended: number
  readonly endedCompact?: number
}

const SETTLE_MS = 1_000

/** The processor time of an idle worker, and the room that an item takes, of every contender on a ground. */
export async function measureAtRest(ground: Ground, amounts: Amounts, say: (text: string) => void): Promise<AtRest[]> {
  const found: AtRest[] = []
  for (const name of contendersOn(ground)) {
    const idle = await idleShare(ground, name, amounts.idleMs)
    const room = await roomOf(ground, name, amounts.stored)
    found.push({ name, ...idle, ...room })
    const server = idle.idleServer === undefined ? '' : ` + ${idle.idleServer.toFixed(2)} %`
    say(
      `${ground.kind}, ${name}: idle ${idle.idleClient.toFixed(2)} %${server}, ` +
        `${Math.round(room.pending)} bytes pending, ${Math.round(room.ended)} ended`,
    )
  }
  return found
}

async function idleShare(ground: Ground, name: string, ms: number) {
  const place = await ground.fresh()
  const contender = new ContenderProcess(name)
  try {
    await contender.ask('open', { place, isForLatency: true, ...pidOf(ground) })
    await contender.ask('listen')
    await sleep(SETTLE_MS)
    const cost = await contender.ask('idle', { ms })
    await closed(contender)
    const share = (spentMs: number) => (100 * spentMs) / cost.ms
    return {
      idleClient: share(cost.clientMs),
      ...(cost.serverMs === undefined ? {} : { idleServer: share(cost.serverMs) }),
    }
  } finally {
    contender.end()
    await ground.drop(place)
  }
}

async function roomOf(ground: Ground, name: string, count: number) {
  const place = await ground.fresh()
  let contender = new ContenderProcess(name)
  const perItem = (bytes: number, empty: number) => (bytes - empty) / count
  /** On disk or in the server; in memory, what is alive in the process. */
  const bytes = async () => (await ground.bytes(place)) ?? (await contender.ask('memory')).heapBytes
  /** The same when maintenance has been there. Everything has to be closed for it, so not where it would be gone. */
  const compact = async () => {
    if (ground.kind === 'memory') return undefined
    await closed(contender)
    await ground.compact(place)
    const size = await bytes()
    contender.end()
    contender = new ContenderProcess(name)
    await contender.ask('open', { place })
    return size
  }
  try {
    await contender.ask('open', { place })
    const emptyCompact = await compact()
    const empty = await bytes()
    await contender.ask('bulk', { from: 0, count, bytes: BYTES })
    const pending = await bytes()
    const pendingCompact = await compact()
    await contender.ask('drain', { count })
    const ended = await bytes()
    const endedCompact = await compact()
    return {
      pending: perItem(pending, empty),
      ended: perItem(ended, empty),
      ...(emptyCompact === undefined || pendingCompact === undefined || endedCompact === undefined
        ? {}
        : {
            pendingCompact: perItem(pendingCompact, emptyCompact),
            endedCompact: perItem(endedCompact, emptyCompact),
          }),
    }
  } finally {
    contender.end()
    await ground.drop(place)
  }
}
