import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeQueueFs } from '../../../src/backends/memory/file/node-fs.js'
import { type MemoryQueue, memoryQueue, type QueueFsLike } from '../../../src/backends/memory/index.js'
import type { PulledWork } from '../../../src/ports/ports.js'
import { RecordingFs } from './recording-fs.js'

const FILE = 'sub/q.json'
const bodies = (pulled: readonly PulledWork[]) => pulled.map(({ body }) => body)

/** A queue on a file, in either mode, with a clock that the test moves and the errors that were reported. */
function fileQueue(fs: QueueFsLike, clock = { now: 1000 }, file = FILE) {
  const errors: unknown[] = []
  const queue = memoryQueue({ file, fs, now: () => clock.now, onError: (error) => errors.push(error) })
  return { queue, clock, errors }
}

const MODES = [
  ['snapshots', (fs: RecordingFs) => fs.four()],
  ['a journal', (fs: RecordingFs) => fs.journal()],
] as const

describe.each(MODES)('a queue on a file, kept as %s', (_mode, modeOf) => {
  // S10
  it('creates the directory once, and delivers everything to a queue opened later', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(modeOf(fs))
    queue.push('a')
    queue.push('b')

    expect(fs.calls.filter((call) => call.startsWith('mkdir'))).toEqual(['mkdir sub'])
    expect(bodies(fileQueue(modeOf(fs)).queue.pop(9, 100))).toEqual(['a', 'b'])
  })

  it('creates no directory for a bare file name', () => {
    const fs = new RecordingFs()
    fileQueue(modeOf(fs), undefined, 'q.json').queue.push('a')

    expect(fs.count('mkdir')).toBe(0)
  })

  // S12
  it('keeps the dead letters', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(modeOf(fs))
    queue.push('bad')
    const [pulled] = queue.pop(1, 100)
    queue.deadLetter('bad', 'boom')
    queue.ack(pulled!)
    const again = fileQueue(modeOf(fs)).queue

    expect(again.dead).toEqual([{ body: 'bad', error: 'boom' }])
    expect(again.size()).toBe(0)
  })

  it('keeps ids, starts, notes and letters, in whichever process they were written', async () => {
    const fs = new RecordingFs()
    const ids: (string | undefined)[] = []
    for (const process of [1, 2]) {
      const { queue } = fileQueue(modeOf(fs))
      queue.push(`process ${process}`)
      for (const pulled of queue.pop(9, 100)) {
        queue.start([pulled])
        queue.fail(pulled, 0, `noted by ${process}`)
        if (process === 1) ids.push(pulled.id)
        else if (pulled.body === 'process 2') ids.push(pulled.id)
        else expect([pulled.id, pulled.starts, pulled.note]).toEqual([ids[0], 1, 'noted by 1'])
      }
      await queue.deadLetters.add({ id: `letter ${process}`, body: 'b', error: 'e', detail: '{"attempts":2}' })
    }
    expect(new Set(ids).size).toBe(2)
    const { queue } = fileQueue(modeOf(fs))
    const pulled = queue.pop(9, 100)
    expect(pulled.map(({ id, starts, note }) => [id, starts, note])).toEqual([
      [ids[0], 2, 'noted by 2'],
      [ids[1], 1, 'noted by 2'],
    ])
    for (const one of pulled) queue.ack(one)
    const letters = await queue.deadLetters.list({ limit: 9 })
    expect(letters.map(({ id, detail, at }) => [id, detail, at])).toEqual([
      ['letter 1', '{"attempts":2}', 1000],
      ['letter 2', '{"attempts":2}', 1000],
    ])
    expect(await queue.deadLetters.redrive(letters)).toBe(2)
    const again = fileQueue(modeOf(fs)).queue
    expect(again.dead).toEqual([])
    expect(again.pop(9, 100).map(({ id }) => id)).toEqual(['letter 1', 'letter 2'])
    again.push('later')
    expect(
      fileQueue(modeOf(fs))
        .queue.pop(9, 100)
        .map(({ id }) => id),
    ).not.toContain(undefined)
  })

  it('forgets a dead letter that was redriven', async () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(modeOf(fs))
    queue.deadLetter('a', 'x')
    queue.deadLetter('b', 'x')
    const dlq = queue.deadQueue()
    await dlq.ack((await dlq.pop(1, 100))[0]!)

    expect(fileQueue(modeOf(fs)).queue.dead).toEqual([{ body: 'b', error: 'x' }])
  })

  // S13
  it('starts empty on a file that makes no sense, and reports it once', () => {
    for (const content of ['not json{', '5', '[]', 'null', 'millrace-queue 2\n']) {
      const fs = new RecordingFs()
      fs.files.set(FILE, content)
      const { queue, errors } = fileQueue(modeOf(fs))

      expect([content, queue.size(), queue.dead, errors.length]).toEqual([content, 0, [], 1])
    }
  })

  // S13
  it('starts empty and without complaint on no file, on an empty one and on an object without the known fields', () => {
    for (const content of [undefined, '', '{}', 'millrace-qu']) {
      const fs = new RecordingFs()
      if (content !== undefined) fs.files.set(FILE, content)
      const { queue, errors } = fileQueue(modeOf(fs))

      expect([queue.size(), queue.dead, errors]).toEqual([0, [], []])
      queue.push('a')
      expect(fileQueue(modeOf(fs)).queue.size()).toBe(1)
    }
  })

  // S13
  it('starts empty when the file cannot be read, and reports it once', () => {
    const fs = new RecordingFs()
    fs.failing = 'readFile'
    const { queue, errors } = fileQueue(modeOf(fs))

    expect([queue.size(), errors.length]).toEqual([0, 1])
  })

  // S13
  it('goes on in memory when a write fails, reports it once, and writes everything with the next change', () => {
    const fs = new RecordingFs()
    const { queue, errors } = fileQueue(modeOf(fs))
    queue.push('a')
    for (const failing of ['writeFile', 'rename', 'append']) {
      fs.failing = failing
      const before = errors.length
      expect(() => queue.push(`while ${failing} fails`)).not.toThrow()
      fs.failing = undefined
      expect(errors.length - before).toBeLessThanOrEqual(1)
    }
    expect(errors.length).toBeGreaterThanOrEqual(1)
    queue.push('z')

    expect(queue.size()).toBe(5)
    expect(fileQueue(modeOf(fs)).queue.size()).toBe(5)
  })

  // S13
  it('survives an observer that throws', () => {
    const fs = new RecordingFs()
    const queue = memoryQueue({
      file: FILE,
      fs: modeOf(fs),
      onError: () => {
        throw new Error('mine')
      },
    })
    fs.failing = 'mkdir'
    expect(() => queue.push('a')).not.toThrow()
    expect(queue.size()).toBe(1)
  })

  it('delivers immediately what was leased, with its delivery counted; delays and keys survive', () => {
    const fs = new RecordingFs()
    const { queue, clock } = fileQueue(modeOf(fs))
    queue.push('leased')
    queue.push('delayed', { delay: 500 })
    queue.push('keyed', { dedupeKey: 'k', priority: -1 })
    queue.pop(1, 60_000)
    const again = fileQueue(modeOf(fs), clock).queue

    expect(again.pop(1, 60_000)).toMatchObject([{ body: 'leased', attempt: 2 }])
    again.push('keyed', { dedupeKey: 'k' })
    expect(again.size()).toBe(3)
    clock.now += 499
    expect(bodies(again.pop(9, 60_000))).toEqual(['keyed'])
    clock.now += 1
    expect(bodies(again.pop(9, 60_000))).toEqual(['delayed'])
  })

  it('keeps priorities and places', () => {
    const fs = new RecordingFs()
    const { queue, clock } = fileQueue(modeOf(fs))
    for (const body of ['a', 'b', 'c']) queue.push(body)
    queue.push('urgent', { priority: 7 })
    const [, a] = queue.pop(2, 100)
    queue.fail(a!)

    expect(bodies(fileQueue(modeOf(fs), clock).queue.pop(9, 100))).toEqual(['urgent', 'a', 'b', 'c'])
  })

  it('shows a second queue on the same file, opened while the first lives, all that was written so far', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(modeOf(fs))
    queue.push('a')
    expect(fileQueue(modeOf(fs)).queue.size()).toBe(1)
    queue.push('b')
    expect(fileQueue(modeOf(fs)).queue.size()).toBe(2)
  })

  it('takes over a file of @ayepi/work', () => {
    const fs = new RecordingFs()
    fs.files.set(
      FILE,
      JSON.stringify({
        items: [
          { body: 'visible', visibleAt: 0, attempt: 1 },
          { body: 'second try', visibleAt: 0, attempt: 2 },
          { body: 'leased', visibleAt: 99_000, attempt: 1, leaseToken: 'x' },
          { body: 'delayed', visibleAt: 5000, attempt: 1, dedupeKey: 'k' },
        ],
        dead: [{ body: 'bad', error: 'boom' }],
      }),
    )
    const { queue, clock, errors } = fileQueue(modeOf(fs))

    expect(errors).toEqual([])
    expect(queue.dead).toEqual([{ body: 'bad', error: 'boom' }])
    expect(queue.pop(9, 100).map(({ body, attempt }) => [body, attempt])).toEqual([
      ['visible', 1],
      ['second try', 2],
      ['leased', 2],
    ])
    queue.push('again', { dedupeKey: 'k' })
    expect(queue.size()).toBe(4)
    expect(fileQueue(modeOf(fs), clock).queue.size()).toBe(4)
  })

  it('reads what it can of a snapshot with broken items, and says so', () => {
    const fs = new RecordingFs()
    fs.files.set(
      FILE,
      JSON.stringify({ items: [{ body: 'a', attempt: 'x' }, { visibleAt: 1 }, 7], dead: [{ body: 1 }] }),
    )
    const { queue, errors } = fileQueue(modeOf(fs))

    expect(bodies(queue.pop(9, 100))).toEqual(['a'])
    expect(errors.length).toBe(1)
  })
})

describe('with a file system of four methods', () => {
  // S11
  it('each change is one write and one rename; whatever changes nothing writes nothing', () => {
    const fs = new RecordingFs()
    const { queue, clock } = fileQueue(fs.four())
    const writes = (act: () => void) => {
      const before = fs.calls.length
      act()
      return fs.calls.slice(before).filter((call) => !call.startsWith('mkdir'))
    }
    const once = ['writeFile sub/q.json.tmp', 'rename sub/q.json.tmp sub/q.json']

    expect(writes(() => queue.pop(9, 100))).toEqual([])
    expect(writes(() => queue.push('a', { dedupeKey: 'k' }))).toEqual(once)
    expect(writes(() => queue.push('a', { dedupeKey: 'k' }))).toEqual([])
    let pulled = queue.pop(0, 100)
    expect(writes(() => (pulled = queue.pop(9, 100)))).toEqual(once)
    expect(writes(() => queue.heartbeat(pulled[0]!, 100))).toEqual([])
    expect(writes(() => queue.fail({ ...pulled[0]!, handle: 'nope' }))).toEqual([])
    expect(writes(() => queue.fail(pulled[0]!, 5))).toEqual(once)
    expect(writes(() => queue.pop(9, 100))).toEqual([])
    clock.now += 5
    pulled = queue.pop(9, 100)
    clock.now += 100
    expect(writes(() => queue.pop(0, 100))).toEqual(once) // A reclaim by itself is a change too.
    pulled = queue.pop(9, 100)
    expect(writes(() => queue.ack(pulled[0]!))).toEqual(once)
    expect(writes(() => queue.ack(pulled[0]!))).toEqual([])
    expect(writes(() => queue.deadLetter('a', 'b'))).toEqual(once)
    expect(writes(() => queue.pushMany([{ body: 'x' }, { body: 'y' }]))).toEqual(once)
  })

  it('refuses to promise that it survives a power cut', () => {
    const fs = new RecordingFs().four()
    expect(() => memoryQueue({ file: FILE, fs, durability: 'power' })).toThrow(
      /memoryQueue.durability must be 'process'/,
    )
  })
})

describe('with a file system that can append', () => {
  it('appends one record for each change and rewrites nothing', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    for (let n = 0; n < 100; n += 1) queue.push(`body ${n}`)
    queue.ackMany(queue.pop(50, 100))

    expect([fs.count('append'), fs.count('writeFile')]).toEqual([102, 0])
    expect(fileQueue(fs.journal()).queue.size()).toBe(50)
  })

  it('swaps in a short file when most of the journal is outdated', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    const body = 'x'.repeat(1000)
    queue.push('kept', { delay: 1e9 })
    for (let n = 0; n < 5000; n += 1) {
      queue.push(body)
      queue.ack(queue.pop(1, 100)[0]!)
    }
    expect(fs.count('rename')).toBeGreaterThanOrEqual(3)
    expect(fs.count('rename')).toBeLessThanOrEqual(8)
    expect(fs.files.get(FILE)!.length).toBeLessThan(2_000_000)
    expect(fileQueue(fs.journal()).queue.size()).toBe(1)
  })

  it('does not rewrite a journal that is long because much is alive in it', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    for (let n = 0; n < 4000; n += 1) queue.push('x'.repeat(1000))
    expect(fs.count('rename')).toBe(0)
  })

  it('does not rewrite it either when the queue has been opened anew', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    for (let n = 0; n < 4000; n += 1) queue.push('x'.repeat(1000))
    const { queue: again } = fileQueue(fs.journal())
    for (let n = 0; n < 100; n += 1) again.push('y'.repeat(1000))
    expect(fs.count('rename')).toBe(0)
    // Nor when some of what was restored leaves.
    again.ackMany(again.pop(1000, 100))
    for (let n = 0; n < 100; n += 1) again.push('z'.repeat(1000))
    expect(fs.count('rename')).toBe(0)
    expect(fileQueue(fs.journal()).queue.size()).toBe(3200)
  })

  it('counts restored dead letters as alive', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    for (let n = 0; n < 2000; n += 1) queue.deadLetter('x'.repeat(1000), 'why')
    const { queue: again } = fileQueue(fs.journal())
    for (let n = 0; n < 100; n += 1) again.push('y')
    expect(fs.count('rename')).toBe(0)
  })

  it('rewrites once, not at every change, what is far longer on file than it looks', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    // JSON spells each of these with six characters.
    for (let n = 0; n < 300; n += 1) queue.push('\u0001'.repeat(1000), { priority: 1 })
    for (let n = 0; n < 100; n += 1) queue.push('y')
    expect(fs.count('rename')).toBeLessThanOrEqual(1)
  })

  it('swaps in a short file after reopening too, once what was restored has left', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    for (let n = 0; n < 4000; n += 1) queue.push('x'.repeat(1000))
    const { queue: again } = fileQueue(fs.journal())
    again.ackMany(again.pop(4000, 100))
    again.push('last')
    expect(fs.count('rename')).toBe(1)
    expect(fs.files.get(FILE)!.length).toBeLessThan(1000)
  })

  // S15
  it('ignores a torn last record without complaint, wherever the file was cut', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    const sizes: [length: number, size: number][] = [[0, 0]]
    for (const body of ['a', 'b', 'ü漢字', 'd']) {
      queue.push(body)
      sizes.push([fs.files.get(FILE)!.length, queue.size()])
    }
    queue.ack(queue.pop(1, 100)[0]!)
    const whole = fs.files.get(FILE)!
    for (let cut = 0; cut < whole.length; cut += 1) {
      const torn = new RecordingFs()
      torn.files.set(FILE, whole.slice(0, cut))
      const { queue: again, errors } = fileQueue(torn.journal())
      const expected = sizes.filter(([length]) => length <= cut).at(-1)![1]

      expect([cut, errors, again.size()]).toEqual([cut, [], expected])
      // What is written next must not hide behind the torn record.
      again.push('next')
      expect(fileQueue(torn.journal()).queue.size()).toBe(expected + 1)
    }
  })

  it('stops at a bad checksum in the middle, reports it once, and keeps what it could not read', () => {
    const fs = new RecordingFs()
    const { queue } = fileQueue(fs.journal())
    for (const body of ['a', 'b', 'c']) queue.push(body)
    const lines = fs.files.get(FILE)!.split('\n')
    lines[2] = lines[2]!.replace(/b$/, 'B')
    fs.files.set(FILE, lines.join('\n'))
    const { queue: again, errors } = fileQueue(fs.journal())

    expect(bodies(again.pop(9, 100))).toEqual(['a'])
    expect(errors).toMatchObject([{ code: 'QUEUE_FILE_DAMAGED' }])
    expect(fs.files.get(`${FILE}.damaged`)).toBe(`${lines[2]}\n${lines[3]}\n`)
    expect(fileQueue(fs.journal()).queue.size()).toBe(1)
  })

  it('flushes file and directory before a call returns, when it has to survive a power cut', () => {
    const fs = new RecordingFs()
    const queue = memoryQueue({ file: FILE, fs: fs.journal(), durability: 'power' })
    queue.push('a')
    queue.push('b')

    expect(fs.calls.filter((call) => /append|sync/.test(call))).toEqual([
      `append ${FILE}`,
      `sync ${FILE}`,
      'sync sub',
      `append ${FILE}`,
      `sync ${FILE}`,
    ])
    fs.files.set(FILE, fs.files.get(FILE)!.slice(0, -3))
    fs.calls.length = 0
    memoryQueue({ file: FILE, fs: fs.journal(), durability: 'power' }).push('c')
    expect(fs.calls.filter((call) => /rename|sync/.test(call))).toEqual([
      `sync ${FILE}.tmp`,
      `rename ${FILE}.tmp ${FILE}`,
      'sync sub',
    ])
  })
})

describe('what surrounds the file', () => {
  it('the names of new directories survive a power cut too', () => {
    const fs = new RecordingFs()
    fs.uppermost = 'a/b'
    memoryQueue({ file: 'a/b/c/q.json', fs: fs.journal(), durability: 'power' }).push('x')

    expect(fs.calls.filter((call) => !call.startsWith('readFile'))).toEqual([
      'mkdir a/b/c',
      'sync a/b',
      'sync a',
      'append a/b/c/q.json',
      'sync a/b/c/q.json',
      'sync a/b/c',
    ])
  })

  it.each(['append', 'rename'])('nothing is left beside it when %s fails in the middle of a rewrite', (failing) => {
    const fs = new RecordingFs()
    fs.files.set(FILE, 'millrace-queue 1\ntorn')
    const { queue, errors } = fileQueue(fs.journal())
    fs.failing = failing
    queue.push('a')

    expect(errors.length).toBe(1)
    expect([...fs.files.keys()]).toEqual([FILE])
    fs.failing = undefined
    queue.push('b')
    expect(fileQueue(fs.journal()).queue.size()).toBe(2)
  })

  it('reports the write that failed when not even the rest of it can be removed', () => {
    const fs = new RecordingFs()
    fs.files.set(FILE, 'millrace-queue 1\ntorn')
    const remove = () => {
      throw new Error('remove failed')
    }
    const { queue, errors } = fileQueue({ ...fs.journal(), remove })
    fs.failing = 'rename'
    queue.push('a')
    expect(errors).toMatchObject([{ message: 'rename failed' }])
  })

  describe('on the real file system', () => {
    let folder = ''
    const home = process.cwd()
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'millrace-queue-'))
    })
    afterEach(() => {
      process.chdir(home)
      rmSync(folder, { recursive: true, force: true })
    })

    it('two spellings of a path are one file, also after a rewrite by one of them', () => {
      const open = (file: string) => memoryQueue({ file, fs: { ...nodeQueueFs } })
      const one = open(join(folder, 'q'))
      one.push('a')
      nodeQueueFs.rename(`${folder}/./q`, `${folder}/moved`)
      one.push('b')
      // With a handle that outlived the rename this would be at the end of the other file.
      expect(readFileSync(join(folder, 'q'), 'utf8')).toMatch(/b\n$/)
    })

    it('it stays where it is when the program changes its working directory', () => {
      process.chdir(folder)
      const queue = memoryQueue({ file: 'deep/er/q', durability: 'power' })
      queue.push('a')
      process.chdir(home)
      queue.push('b')
      expect(memoryQueue({ file: join(folder, 'deep/er/q') }).size()).toBe(2)
    })
  })
})

describe('any sequence of calls, with a crash after any of them', () => {
  const step = fc.oneof(
    fc.record({
      do: fc.constant('push' as const),
      delay: fc.constantFrom(0, 0, 50),
      priority: fc.constantFrom(0, 0, 3),
      key: fc.constantFrom(undefined, 'k'),
    }),
    fc.record({ do: fc.constant('pop' as const), max: fc.nat(3), v: fc.constantFrom(5, 100) }),
    fc.record({ do: fc.constantFrom('ack' as const, 'fail' as const, 'dead' as const), which: fc.nat(9) }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.nat(20) }),
    fc.record({ do: fc.constant('crash' as const) }),
  )

  function play(
    queue: MemoryQueue,
    one: Exclude<typeof step extends fc.Arbitrary<infer T> ? T : never, { do: 'wait' | 'crash' }>,
    n: number,
    pulled: PulledWork[],
  ) {
    switch (one.do) {
      case 'push':
        queue.push(`body ${n}`, { delay: one.delay, priority: one.priority, ...(one.key && { dedupeKey: one.key }) })
        return undefined
      case 'pop': {
        const got = queue.pop(one.max, one.v)
        pulled.push(...got)
        return got.map(({ body, attempt }) => [body, attempt])
      }
      default: {
        const chosen = pulled[one.which % Math.max(1, pulled.length)]
        if (chosen === undefined) return undefined
        if (one.do === 'ack') queue.ack(chosen)
        else if (one.do === 'fail') queue.fail(chosen)
        else queue.deadLetter(chosen.body, 'why')
        return undefined
      }
    }
  }

  it('leaves journal and snapshots with the same queue', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const clock = { now: 1000 }
        const sides = [new RecordingFs(), new RecordingFs()].map((fs, side) => {
          const mode = side === 0 ? fs.four() : fs.journal()
          return { open: () => fileQueue(mode, clock), current: fileQueue(mode, clock), pulled: [] as PulledWork[] }
        })
        for (const [n, one] of steps.entries()) {
          if (one.do === 'wait') clock.now += one.ms
          else if (one.do === 'crash') for (const side of sides) side.current = side.open()
          else {
            const [a, b] = sides.map((side) => play(side.current.queue, one, n, side.pulled))
            expect(b).toEqual(a)
          }
          expect(sides[1]!.current.queue.size()).toBe(sides[0]!.current.queue.size())
        }
        clock.now += 1000
        const [a, b] = sides.map((side) => {
          const { queue, errors } = side.open()
          return [queue.pop(99, 1).map(({ body, attempt }) => [body, attempt]), queue.dead, errors]
        })
        expect(b).toEqual(a)
        expect(b![2]).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  it('never throws on a file of anything', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.string().map((text) => `millrace-queue 1\n${text}`),
        ),
        (content) => {
          const fs = new RecordingFs()
          fs.files.set(FILE, content)
          const { queue, errors } = fileQueue(fs.journal())
          queue.push('a')
          expect(errors.length).toBeLessThanOrEqual(1)
          expect(fileQueue(fs.journal()).queue.size()).toBe(queue.size())
        },
      ),
      { numRuns: 1000 },
    )
  })
})

describe('options of a file', () => {
  it('are checked by name', () => {
    expect(() => memoryQueue({ file: '' })).toThrow(/memoryQueue.file must be a non-empty string/)
    expect(() => memoryQueue({ file: 'x', fs: {} as never })).toThrow(
      /memoryQueue.fs.readFile is required: it must be a function/,
    )
    expect(() => memoryQueue({ file: 'x', durability: 'none' as never })).toThrow(/'process' or 'power', got "none"/)
    expect(() => memoryQueue({ file: 'x', onError: 5 as never })).toThrow(
      /memoryQueue.onError must be a function, got 5/,
    )
    expect(() => memoryQueue({ file: 'x', fs: null as never })).toThrow(/memoryQueue.fs must be an object/)
    expect(() => memoryQueue({ maxDead: -1 })).toThrow(/memoryQueue.maxDead must be an integer >= 0, got -1/)
    expect(() => memoryQueue({ fiel: 'x' } as never)).toThrow(/Did you mean "file"/)
  })

  it('are checked without a file too', () => {
    expect(() => memoryQueue({ fs: 5 as never })).toThrow(/memoryQueue.fs must be an object like QueueFsLike, got 5/)
    expect(() => memoryQueue({ onError: 5 as never })).toThrow(/memoryQueue.onError must be a function, got 5/)
    expect(() => memoryQueue({ durability: 'nope' as never })).toThrow(
      /memoryQueue.durability must be 'process' or 'power'/,
    )
    expect(() => memoryQueue({ now: null as never })).toThrow(/memoryQueue.now must be a function or a Clock, got null/)
    expect(() => memoryQueue({ clock: null as never })).toThrow(/memoryQueue.clock must be a function or a Clock/)
  })
})
