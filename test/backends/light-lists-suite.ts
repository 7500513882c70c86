import { randomBytes } from 'node:crypto'
import { createWork } from 'millrace'
import { openOps } from 'millrace/ops'
import { describe, expect, it } from 'vitest'
import type { Backend } from '../../src/ports/ports.js'
import { ledgerOn } from './ledger-on.js'
import { claim, deadLetter, enqueue, envelope, finish } from './native.js'

const ITEMS = 40
/** So large that no table keeps it within its row, and of what no compression makes smaller. */
const payload = () => JSON.stringify(randomBytes(740_000).toString('base64'))
const PAYLOAD_BYTES = 986_000
/** One list of forty items; a single payload would be more. */
const FEW_BYTES = 300_000

/** A backend for the test, opened anew so that nothing is in its memory, and what it reads from storage meanwhile. */
export interface Weighed {
  readonly backend: Backend
  /** How many bytes were read from the file or the server while this ran. Undefined: not to be measured here. */
  bytesOf?(call: () => Promise<unknown>): Promise<number | undefined>
}

/** Forty finished children of one parent, each with a large result and large progress, in a group with a large value. */
async function fill(backend: Backend): Promise<void> {
  const ledger = ledgerOn(backend)
  const parent = envelope('parent')
  const children = Array.from({ length: ITEMS }, (_, i) =>
    envelope(`child-${i}`, { type: 'big', groupId: parent.groupId, parent: 'parent', input: payload() }),
  )
  await ledger.commit([enqueue(parent)])
  for (const child of children) {
    await ledger.commit([enqueue(child)])
    const [taken] = (await claim(ledger)).filter(({ lease }) => lease.id === child.id)
    const me = { id: 'w', host: 'h', version: '1', types: ['big'], queues: ['default'] }
    await ledger.extend([{ lease: taken!.lease, running: true, progress: payload() }], 60_000, me)
    const value = { do: 'setGroupValue', groupId: parent.groupId, value: payload(), final: false } as const
    const isLast = child === children.at(-1)
    // One of them is dead, so that there is a failure, too.
    const end = isLast ? deadLetter(taken!, 'Error: boom') : finish(taken!, payload())
    await ledger.commit([isLast ? end : { ...end, effects: [value, ...end.effects] }])
  }
}

/** Lists are as light as their items are many, whatever these carry. */
export function describeLightLists(
  name: string,
  open: () => Promise<{ readonly full: Backend; again(): Promise<Weighed>; close(): Promise<void> }>,
): void {
  describe(`forty items on ${name} that carry three megabytes each`, () => {
    it('are listed, counted, audited and shown as children without reading what they carry', async () => {
      const { full, again, close } = await open()
      try {
        await fill(full)
        const { backend, bytesOf } = await again()
        const inspect = ledgerOn(backend).inspect!
        const ops = openOps(backend)
        const w = createWork({ backend, autoStart: false })
        const ids = Array.from({ length: ITEMS }, (_, i) => `child-${i}`)
        // What is read once for a connection is not what lists cost.
        await inspect.counts()
        const calls: Readonly<Record<string, () => Promise<unknown>>> = {
          'inspect.list': () => inspect.list({ limit: 100 }),
          'inspect.list of a group': () => inspect.list({ groupId: 'g-parent', limit: 100 }),
          'inspect.summaries': () => inspect.summaries(ids),
          'inspect.openCounts': () => inspect.openCounts(['g-parent']),
          'w.list': () => w.list(),
          'w.states': () => w.states(ids),
          'ops.list': () => ops.list({ state: 'completed' }),
          'ops.failures': () => ops.failures(),
          'ops.audit': () => ops.audit({ thorough: true }),
          'a bulk action': () => ops.redrive({ state: 'dead' }, { who: 'me', why: 'a test', dryRun: true }),
        }
        for (const [called, call] of Object.entries(calls)) {
          let answer: unknown
          const bytes = await bytesOf?.(async () => {
            answer = await call()
          })
          answer ??= await call()
          expect(JSON.stringify(answer)?.length, `characters of ${called}`).toBeLessThan(FEW_BYTES)
          if (bytes !== undefined) expect(bytes, `bytes read by ${called}`).toBeLessThan(FEW_BYTES)
        }
        // The measure is a measure: one item has its payloads, and they are counted.
        const one = await bytesOf?.(() => ledgerOn(backend).read(['child-0']))
        if (one !== undefined) expect(one, 'bytes read by read()').toBeGreaterThan(PAYLOAD_BYTES)
        const child = await ops.item('child-0')
        expect(child?.result?.length).toBeGreaterThan(PAYLOAD_BYTES)
        expect(child?.progress?.length).toBeGreaterThan(PAYLOAD_BYTES)
        // A parent has its own payloads and the value of its group, and only the names of its children.
        const parent = await ops.item('parent')
        expect(parent?.children).toHaveLength(ITEMS)
        expect(JSON.stringify({ ...parent, group: undefined }).length).toBeLessThan(FEW_BYTES)
        await w.stop()
      } finally {
        await close()
      }
    })
  })
}
