import { describe, expect, it } from 'vitest'
import { memoryBackend } from '../../../src/backends/memory/index.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { ledgerOn } from '../ledger-on.js'
import { anybody, claim, DAY, deadLetter, enqueue, envelope, finish, ids } from '../native.js'
import { RecordingFs } from './recording-fs.js'

const FILE = 'q.queue'

/** A backend on a file; `restart` is the same file in a new process. */
function onFile(modeOf: (fs: RecordingFs) => ReturnType<RecordingFs['four']> = (fs) => fs.journal()) {
  const fs = new RecordingFs()
  const clock = new FakeClock()
  const open = () => {
    const errors: unknown[] = []
    const backend = memoryBackend({
      clock,
      queue: { file: FILE, fs: modeOf(fs), onError: (error) => errors.push(error) },
    })
    return { backend, ledger: ledgerOn(backend), errors }
  }
  return { fs, clock, restart: open, ...open() }
}

describe.each([
  ['journal', (fs: RecordingFs) => fs.journal()],
  ['snapshots', (fs: RecordingFs) => fs.four()],
] as const)('a native ledger whose queue is on a file (%s)', (_name, modeOf) => {
  it('delivers after a restart what was enqueued and not finished, in every queue', async () => {
    const { ledger, restart } = onFile(modeOf)
    await ledger.commit([
      enqueue(envelope('a', { input: '"ü漢字"', tags: ['x'], 'x-mine': 7 })),
      enqueue(envelope('done')),
      enqueue(envelope('b'), { queue: 'bulk' }),
    ])
    const items = await claim(ledger)
    await ledger.commit([finish(items.find(({ lease }) => lease.id === 'done')!)])
    const again = restart()

    const [a, ...more] = await claim(again.ledger)
    expect(more).toEqual([])
    expect(a?.envelope).toEqual(envelope('a', { input: '"ü漢字"', tags: ['x'], 'x-mine': 7 }))
    expect(ids(await claim(again.ledger, 9, 'bulk'))).toEqual(['b'])
    expect(again.errors).toEqual([])
  })

  it('knows pending items after a restart before any claim', async () => {
    const { ledger, restart } = onFile(modeOf)
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'), { delayMs: 60_000 })])
    const again = restart().ledger

    expect((await again.read(['a', 'b', 'c'])).map((view) => view?.status)).toEqual(['pending', 'pending', undefined])
    expect(await again.inspect?.counts()).toEqual([
      { queue: 'default', type: 't', counts: { waiting: 1, scheduled: 1 } },
    ])
    expect(await again.commit([enqueue(envelope('a'))])).toEqual([{ kind: 'repeated', id: 'a' }])
    const cancel = {
      do: 'deadLetter',
      id: 'a',
      ending: 'cancelled',
      class: 'unclassified',
      error: 'no',
      keepMs: DAY,
    } as const
    const guard = { by: 'status', id: 'a', in: ['pending'] } as const
    expect((await again.commit([{ guard, effects: [cancel] }]))[0]?.kind).toBe('applied')
    expect(ids(await claim(again))).toEqual([])
  })

  it('counts the leases that the dead process held, and as crashes those whose handler ran', async () => {
    const { ledger, restart } = onFile(modeOf)
    await ledger.commit(['ran', 'waited', 'ended'].map((id) => enqueue(envelope(id))))
    const [ran, waited, ended] = await claim(ledger)
    const beat = (leases: readonly (typeof ran)[], running: boolean) =>
      ledger.extend(
        leases.map((one) => ({ lease: one!.lease, running })),
        1000,
        worker,
      )
    await beat([waited], false)
    await beat([ran, ended], true)
    await beat([ended], false)
    const again = await claim(restart().ledger)

    expect(again.map(({ lease, lapses, crashes }) => [lease.id, lapses, crashes])).toEqual([
      ['ran', 1, 1],
      ['waited', 1, 0],
      ['ended', 1, 0],
    ])
    expect(again[0]!.lease.fence).toBeGreaterThan(1)
  })

  it('lets a settlement of a lease from before the restart do nothing', async () => {
    const { ledger, restart } = onFile(modeOf)
    await ledger.commit([enqueue(envelope('a'))])
    const [old] = await claim(ledger)
    const again = restart().ledger
    await again.read(['a'])

    expect(await again.commit([finish(old!)])).toEqual([{ kind: 'stale' }])
    const [current] = await claim(again)
    // Its group was in memory only: the count goes below 0, and the group closes.
    expect(await again.commit([finish(current!)])).toEqual([{ kind: 'applied', closed: [{ groupId: 'g-a' }] }])
  })

  it('keeps the attempt and the due time of a retry', async () => {
    const { ledger, restart, clock } = onFile(modeOf)
    await ledger.commit([enqueue(envelope('a'))])
    const [a] = await claim(ledger)
    await ledger.commit([
      {
        guard: { by: 'lease', lease: a!.lease },
        effects: [{ do: 'retry', id: 'a', attempt: 2, delayMs: 5000, reason: 'retry' }],
      },
    ])
    const again = restart().ledger
    expect(ids(await claim(again))).toEqual([])
    await clock.advance(5000)
    const [second] = await claim(again)
    expect([second?.envelope.attempt, second?.deliveries]).toEqual([2, 1])
  })

  it('keeps dead letters, and the removal of one that is redriven', async () => {
    const { ledger, backend, restart } = onFile(modeOf)
    await ledger.commit([enqueue(envelope('a')), enqueue(envelope('b'))])
    await ledger.commit((await claim(ledger)).map((item) => deadLetter(item, `Error: ${item.lease.id}`)))
    expect(backend.queue.dead.map(({ error }) => error)).toEqual(['Error: a', 'Error: b'])
    const guard = { by: 'status', id: 'a', in: ['dead'] } as const
    await ledger.commit([{ guard, effects: [{ do: 'redrive', id: 'a', delayMs: 0 }] }])
    const again = restart()

    expect(again.backend.queue.dead).toEqual([{ body: JSON.stringify(envelope('b')), error: 'Error: b' }])
    expect(ids(await claim(again.ledger))).toEqual(['a'])
  })

  it('keeps gates with the members they have counted, and frees their items after the restart', async () => {
    const { ledger, restart } = onFile(modeOf)
    const gate = (id: string, members: readonly string[]) =>
      enqueue(envelope(id), { delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: `k-${id}` } }, [
        { do: 'openGate', key: `k-${id}`, heldId: id, members, need: members.length, of: 'success' },
      ])
    await ledger.commit([
      enqueue(envelope('a')),
      enqueue(envelope('b')),
      gate('both', ['a', 'b']),
      gate('never', ['x']),
    ])
    const [a] = await claim(ledger, 1)
    await ledger.commit([finish(a!)])
    const again = restart().ledger

    const [b, ...none] = await claim(again)
    expect([b?.lease.id, none]).toEqual(['b', []])
    expect((await again.read(['never']))[0]?.hold).toEqual({ by: 'gate', key: 'k-never' })
    await again.commit([finish(b!)])
    const [both] = await claim(again)
    expect([both?.lease.id, both?.gate]).toEqual(['both', { met: true }])
    expect((await restart().ledger.read(['both']))[0]?.status).toBe('pending')
  })

  it('keeps what a gate decided about an item that has not run', async () => {
    const { ledger, restart } = onFile(modeOf)
    await ledger.commit([
      enqueue(envelope('a'), { delayMs: Number.POSITIVE_INFINITY, hold: { by: 'gate', key: 'k' } }, [
        { do: 'openGate', key: 'k', heldId: 'a', members: ['x'], need: 2, of: 'done' },
      ]),
    ])
    expect((await claim(restart().ledger))[0]?.gate).toEqual({ met: false })
  })

  it('keeps pauses', async () => {
    const { ledger, restart } = onFile(modeOf)
    await ledger.commit([enqueue(envelope('a')), anybody({ do: 'pause', what: 'queue', name: 'default' })])
    await claim(ledger)
    const again = restart().ledger
    expect(ids(await claim(again))).toEqual([])
    await again.commit([anybody({ do: 'resume', what: 'queue', name: 'default' })])
    expect(ids(await claim(again))).toEqual(['a'])
    expect(ids(await claim(restart().ledger))).toEqual(['a'])
  })

  it('raises the fence of an item over retries, redrives and restarts', async () => {
    const { ledger, restart } = onFile(modeOf)
    await ledger.commit([enqueue(envelope('a'))])
    const retry = { do: 'retry', id: 'a', attempt: 2, delayMs: 0, reason: 'retry' } as const
    const reopen = { do: 'redrive', id: 'a', delayMs: 0 } as const
    const fences: number[] = []
    const take = async (from = ledger) => {
      const [a] = await claim(from)
      fences.push(a!.lease.fence)
      return a!
    }
    for (let n = 0; n < 3; n += 1)
      await ledger.commit([{ guard: { by: 'lease', lease: (await take()).lease }, effects: [retry] }])
    await ledger.commit([deadLetter(await take())])
    await ledger.commit([{ guard: { by: 'status', id: 'a', in: ['dead'] }, effects: [reopen] }])
    await take()
    await take(restart().ledger)

    expect(fences).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('leaves nothing open that keeps a process alive', async () => {
    expect(onFile(modeOf).ledger.openCount).toBeUndefined()
  })
})

describe('a commit of a ledger whose queue is on a file', () => {
  it('is one append, whatever its size, and none when it changes no queue', async () => {
    const { ledger, fs } = onFile()
    const appends = async (act: () => Promise<unknown>) => {
      const before = fs.count('append')
      await act()
      return fs.count('append') - before
    }
    const many = Array.from({ length: 50 }, (_, n) => enqueue(envelope(`i${n}`), n % 2 === 0 ? {} : { queue: 'bulk' }))

    expect(await appends(() => ledger.commit(many))).toBe(1)
    expect(await appends(() => ledger.commit(many))).toBe(0)
    const items = await claim(ledger)
    expect(await appends(() => claim(ledger))).toBe(0)
    const beat = (running: boolean) =>
      ledger.extend(
        items.map(({ lease }) => ({ lease, running })),
        1000,
        worker,
      )
    expect(await appends(() => beat(true))).toBe(1)
    expect(await appends(() => beat(true))).toBe(0)
    expect(await appends(() => ledger.commit(items.map((item) => finish(item))))).toBe(1)
    expect(await appends(() => ledger.commit([anybody({ do: 'log', who: 'me', why: 'x', what: 'y' })]))).toBe(0)
  })

  it('is on disk as a whole or not at all', async () => {
    const { ledger, fs, restart } = onFile()
    await ledger.commit([enqueue(envelope('parent'))])
    const before = fs.files.get(FILE)!
    const [parent] = await claim(ledger)
    const claimed = fs.files.get(FILE)!
    const children = ['c1', 'c2'].map((id) => ({ do: 'enqueue', item: envelope(id), queue: id, delayMs: 0 }) as const)
    await ledger.commit([finish(parent!, undefined, children)])
    const after = fs.files.get(FILE)!
    expect([before.length < claimed.length, claimed.length < after.length]).toEqual([true, true])
    for (let cut = claimed.length; cut < after.length; cut += 1) {
      fs.files.set(FILE, after.slice(0, cut))
      const { backend, errors } = restart()
      const sizes = [backend.queue, backend.named('c1'), backend.named('c2')].map((queue) => queue.size())
      expect([cut, sizes, errors]).toEqual([cut, [1, 0, 0], []])
    }
    fs.files.set(FILE, after)
    const { backend } = restart()
    expect([backend.queue, backend.named('c1'), backend.named('c2')].map((queue) => queue.size())).toEqual([0, 1, 1])
  })

  it('goes on in memory when the disk is full, and is on disk with the next one', async () => {
    const { ledger, fs, restart, errors } = onFile()
    fs.failing = 'append'
    expect(await ledger.commit([enqueue(envelope('a'))])).toEqual([{ kind: 'applied', closed: [] }])
    expect(errors.length).toBe(1)
    fs.failing = undefined
    await ledger.commit([enqueue(envelope('b'))])
    expect(ids(await claim(restart().ledger))).toEqual(['a', 'b'])
  })
})

const worker = { id: 'w1', host: 'h', version: '1', types: [], queues: [] }
