import type { Ms } from '../../core/time.js'
import { writeEnvelope } from '../envelope.js'
import { allDone } from './call.js'
import { type Desk, deliver, dueIn, keptFor, queueNamed } from './desk.js'
import { checkGate, openGate } from './gates.js'
import type { Parts, Push } from './parts.js'
import type { Progress } from './progress.js'
import { runOf, stateOf, writeState } from './state.js'

/**
 * Makes new items durable: their gates, their states, then their places in the queue, then what gates can say already. Each
 * step may be repeated. `isFresh`: nobody can have seen these items before, so that their states need not be protected
 * from being written twice; on a repetition a child may have run already, and its state is left alone.
 */
export async function pushItems(
  desk: Desk,
  { pushes, gates }: Parts,
  progress: Progress,
  token: string,
  isFresh: boolean,
): Promise<void> {
  const longest = pushes.reduce((most, { delayMs }) => (Number.isFinite(delayMs) ? Math.max(most, delayMs) : most), 0)
  await allDone(gates.map((gate) => progress.once(`gate ${gate.key}`, () => openGate(desk, gate, pushes, longest))))
  await allDone(
    pushes.map((push) =>
      progress.once(`push ${push.item.id}`, async () => {
        await progress.once(`state ${push.item.id}`, () => writeFirstState(desk, push, isFresh))
        await pushBody(desk, push)
      }),
    ),
  )
  await allDone(gates.map(({ key }) => progress.once(`check ${key}`, () => checkGate(desk, key, token))))
}

async function writeFirstState(desk: Desk, push: Push, isFresh: boolean): Promise<void> {
  const { item, queue, delayMs } = push
  const gate = gateOf(push)
  const marks = {
    queue,
    ...(gate === undefined ? {} : { gate, pollMs: push.hold?.pollMs ?? desk.options.gatePollMs }),
    ...(gate === undefined || delayMs === Infinity ? {} : { dueAt: dueIn(desk, delayMs) }),
  }
  const state = writeState(stateOf(item, { status: 'pending', marks }))
  const key = desk.keys.state(item.id)
  if (isFresh) await desk.store.set(key, state, keptFor(desk, delayMs))
  else await desk.store.addIfAbsent(key, state, keptFor(desk, delayMs))
}

export async function pushBody(desk: Desk, push: Push): Promise<void> {
  const { item, queue, delayMs } = push
  const isHeld = gateOf(push) !== undefined
  await deliver(desk, queueNamed(desk, queue), writeEnvelope(item), item, {
    delayMs: isHeld ? Math.min(delayMs, push.hold?.pollMs ?? desk.options.gatePollMs) : finite(desk, delayMs),
    // A redriven item may come back before its last copy has been acked, and must not be swallowed by it.
    key: runOf(item) === 0 ? item.id : undefined,
    wake: !isHeld,
  })
}

const gateOf = ({ hold }: Push): string | undefined => (hold?.by === 'gate' ? hold.key : undefined)

/** A plain queue cannot hold a body until something happens: a hold other than a gate's is looked at again instead. */
const finite = (desk: Desk, delayMs: Ms): Ms => (delayMs === Infinity ? desk.options.gatePollMs : delayMs)
