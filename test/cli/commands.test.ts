import { readFileSync, writeFileSync } from 'node:fs'
import { createWork, defineWork, memoryBackend, PoisonError } from 'millrace'
import type { ActionReport, Ops } from 'millrace/ops'
import { FakeClock } from 'millrace/testing'
import type { MemoryBackend } from 'millrace/types'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../src/cli/commands/index.js'
import { widthOf } from '../../src/cli/terminal/width.js'
import { temporaryFile } from '../drivers/sqlite/temporary.js'
import { Bench } from './support.js'

/** Dead, completed and scheduled items, as a small system leaves them behind. */
async function worked(): Promise<{ backend: MemoryBackend; dead: string[] }> {
  const backend = memoryBackend()
  const broken = defineWork('broken', ({ n }: { n: number }) => {
    throw new PoisonError(`no such thing: \u001b[31m${n}`)
  })
  const fine = defineWork('fine', (_: { n: number }, ctx) => ctx.result('ok'))
  const work = createWork({ backend, work: [broken, fine] as const })
  const many = await work.enqueueMany([broken({ n: 1 }), broken({ n: 2 }), broken({ n: 3 })], { tags: ['import-12'] })
  await Promise.all([...many.map((one) => one.group()), work.enqueue(fine({ n: 4 })).group()])
  await work.enqueue(fine({ n: 5 }), { delay: 3_600_000 }).accepted()
  await work.stop()
  return { backend, dead: many.map(({ id }) => id) }
}

describe('help', () => {
  it('lists every command, and exits with 0 only if it was asked for', async () => {
    const bench = new Bench()
    const { code, out } = await bench.said('--help')
    expect(code).toBe(0)
    for (const { name } of COMMANDS) expect(out).toContain(`  ${name} `)
    expect((await bench.said()).code).toBe(2)
  })

  it.each(COMMANDS.map(({ name }) => name))('of %s shows its flags and an example, and fits', async (name) => {
    const bench = new Bench({ terminal: { columns: 80, rows: 24 }, env: { NO_COLOR: '1' } })
    const { code, out } = await bench.said(name, '--help')
    expect(code).toBe(0)
    expect(out).toMatch(/Examples?\n {2}(npx )?millrace /)
    for (const flag of Object.keys(COMMANDS.find((one) => one.name === name)!.flags)) expect(out).toContain(`--${flag}`)
    for (const line of out.split('\n').filter((one) => !one.startsWith('  millrace')))
      expect(widthOf(line)).toBeLessThanOrEqual(80)
  })

  it('is also shown by millrace help', async () => {
    const bench = new Bench()
    expect(await bench.said('help')).toEqual(await bench.said('--help'))
    expect(await bench.said('help', 'list')).toEqual(await bench.said('list', '--help'))
    expect((await bench.said('help', 'lst')).err).toContain('Did you mean "list"?')
    expect(await bench.said('help', 'foo')).toMatchObject({ code: 2, err: expect.not.stringContaining('Did you mean') })
  })

  it('knows the version', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    expect(await new Bench().said('--version')).toEqual({ code: 0, out: `${version}\n`, err: '' })
  })
})

describe('inspecting', () => {
  it('shows what stands where', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    const { code, out } = await bench.said('overview')
    expect(code).toBe(0)
    expect(out).toMatch(/default +broken .* 3 /)
    expect(out).toContain('0 live workers')
    expect(await bench.json('overview')).toMatchObject({ rows: [{ type: 'broken' }, { type: 'fine' }] })
  })

  it('lists by flags and by a search alike, page by page', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    const first = (await bench.json('list', 'state:dead', '--limit', '2')) as { items: { id: string }[]; next: string }
    expect(first.items).toHaveLength(2)
    const second = (await bench.json('list', '--state', 'dead', '--limit', '2', '--cursor', first.next)) as typeof first
    expect(second.items).toHaveLength(1)
    expect((await bench.said('list', 'type:none')).out).toBe('No item matches.\n')
    expect((await bench.said('list', 'queue:defualt')).err).toContain('Did you mean "default"?')
    expect(await bench.said('list', 'queue:default', 'state:blocked')).toMatchObject({
      out: 'No item matches.\n',
      err: '',
    })
    expect(await bench.said('redrive', 'queue:defualt')).toMatchObject({
      code: 0,
      out: 'There is nothing to redrive (queue:defualt).\n',
      err: 'No item is on queue "defualt", and no worker serves it. Did you mean "default"?\n',
    })
    const { items } = (await bench.json('list', 'state:dead', 'after:1h')) as typeof first
    expect(items.length).toBeGreaterThan(0)
    expect((await bench.said('list', 'state:dead', 'after:2h', 'before:1h')).out).toBe('No item matches.\n')
    expect(await bench.said('list', 'after:1h', 'before:2h')).toMatchObject({ code: 2 })
    const { out, err } = await bench.said('list', 'state:dead', '-n', '2')
    expect(out.split('\n')).toHaveLength(4)
    expect(err).toMatch(/^There are more: --cursor /)
  })

  it('never passes on the control characters of an error', async () => {
    const { backend, dead } = await worked()
    const bench = new Bench({ backend, terminal: { columns: 200, rows: 50 }, env: { NO_COLOR: '1' } })
    for (const args of [['list', 'state:dead'], ['failures'], ['show', dead[0]!], ['explain', dead[0]!]]) {
      const { out } = await bench.said(...args)
      // A line may end within the error, depending on how long ago it was.
      expect(out.replaceAll(/\s+/g, ' ')).toContain('such thing: ␛[31m')
      expect(out).not.toContain('\u001b')
      expect((await bench.said(...args, '--json')).out).not.toContain('\u001b')
    }
  })

  it('fits the terminal, whatever it is about', async () => {
    const { backend, dead } = await worked()
    // Only what must stay whole may be longer: places in the code, ids, and commands to copy.
    const isPlace = (line: string) => /:\d+:\d+\)?$/.test(line)
    const mayBeLong = (line: string) => /^ +millrace |[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{16}/.test(line)
    for (const columns of [30, 60, 100]) {
      const bench = new Bench({ backend, terminal: { columns, rows: 24 }, env: { NO_COLOR: '1' } })
      for (const args of [['overview'], ['list'], ['failures'], ['workers'], ['show', dead[0]!], ['explain', dead[0]!]])
        for (const line of (await bench.said(...args)).out
          .split('\n')
          .filter((one) => !isPlace(one) && (columns > 50 || !mayBeLong(one))))
          expect(widthOf(line)).toBeLessThanOrEqual(columns)
    }
  })

  it('says no with 1 where there is nothing', async () => {
    const bench = new Bench()
    expect(await bench.said('show', 'nobody')).toMatchObject({ code: 1, out: '' })
    expect((await bench.said('explain', 'nobody')).code).toBe(1)
    expect(await bench.said('continue', 'nothing')).toMatchObject({ code: 1, out: '' })
  })

  it('previews a failure', async () => {
    const bench = new Bench()
    expect(await bench.json('preview', 'charge', '{"status":422}')).toMatchObject({ class: 'poison', rule: 'http-422' })
    const { out } = await bench.said('preview', 'charge', 'boom', '--attempts', '2', '--base', '1s', '--jitter', '0')
    expect(out).toContain('      2  1 s')
  })

  it('colours a terminal, and nothing else', async () => {
    const { backend } = await worked()
    const terminal = { columns: 100, rows: 24 }
    expect((await new Bench({ backend, terminal }).said('list')).out).toContain('\u001b[31mdead\u001b[39m')
    expect((await new Bench({ backend, terminal }).said('list', '--no-color')).out).not.toContain('\u001b')
    expect((await new Bench({ backend }).said('list')).out).not.toContain('\u001b')
  })
})

describe('acting', () => {
  it('asks with the count, and takes only yes for yes', async () => {
    const { backend } = await worked()
    const terminal = { columns: 80, rows: 24 }
    for (const answer of ['', 'n', 'yesterday', 'no']) {
      const bench = new Bench({ backend, terminal, answer })
      expect(await bench.said('redrive', '--all')).toMatchObject({ code: 1, out: '' })
      expect(bench.asked).toEqual(['redrive 3 items? [y/N] '])
    }
    const { out, code } = await new Bench({ backend, terminal, answer: 'Y' }).said('redrive', '--all')
    expect([code, out]).toEqual([0, 'Redrove 3 items.\n'])
  })

  it('needs --yes without a terminal, and otherwise changes nothing', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    const { code, err } = await bench.said('discard', 'state:dead')
    expect(code).toBe(2)
    expect(err).toContain('Would discard 3 items. It cannot ask without a terminal: add --yes')
    expect(await bench.json('list', 'state:dead')).toMatchObject({ items: [{}, {}, {}] })
  })

  it('only counts with --dry-run', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    expect((await bench.said('redrive', 'type:broken', '--dry-run')).out).toBe(
      'redrive would change 3 items (type:broken).\n',
    )
    expect(await bench.json('list', 'state:dead')).toMatchObject({ items: [{}, {}, {}] })
  })

  it('takes one item by its id without asking, but never throws one away unasked', async () => {
    const { backend, dead } = await worked()
    const bench = new Bench({ backend })
    expect((await bench.said('redrive', dead[0]!)).out).toBe('Redrove 1 item.\n')
    expect((await bench.said('discard', dead[1]!)).code).toBe(2)
    expect((await bench.said('discard', dead[1]!, '--yes')).out).toBe('Discarded 1 item.\n')
  })

  it('writes who and why into the log', async () => {
    const { backend, dead } = await worked()
    const bench = new Bench({ backend })
    await bench.run('redrive', dead[0]!, '--why', 'mended')
    await bench.run('pause', 'queue', 'bulk', '--who', 'grace', '--force')
    expect(await bench.json('log')).toMatchObject({
      log: [
        { who: 'grace', what: 'pause queue bulk' },
        { who: 'ada@bench', why: 'mended' },
      ],
    })
  })

  it.each([
    [['redrive'], 'Which items?'],
    [['redrive', '--all', 'type:x'], 'Give either a search or --all'],
    [['redrive', 'a', 'b'], 'Give one id or a search'],
    [['redrive', 'a', 'type:x'], 'Give either an id, a search'],
    [['pause', 'queu', 'x'], 'Did you mean "queue"?'],
    [['pause', 'queue'], 'An argument is missing: millrace pause queue|type <name>'],
    [['show', 'a', 'b'], 'Unexpected argument "b"'],
    [['demo', '--json'], 'demo is for people'],
  ])('%j is a usage error', async (args, message) => {
    const { code, err, out } = await new Bench().said(...args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(message)
  })

  it('pauses, shows it, and resumes', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    expect(await bench.said('pause', 'type', 'broken')).toEqual({ code: 0, out: 'Paused type broken.\n', err: '' })
    expect((await bench.said('overview')).out).toContain('paused: type broken')
    expect(await bench.said('pause', 'type', 'broken')).toEqual({
      code: 0,
      out: 'Type broken is already paused.\n',
      err: '',
    })
    expect(await bench.said('resume', 'type', 'broken')).toEqual({ code: 0, out: 'Resumed type broken.\n', err: '' })
    expect((await bench.said('overview')).out).not.toContain('paused')
    expect(await bench.json('log')).toMatchObject({
      log: [{ what: 'resume type broken' }, { what: 'pause type broken' }],
    })
  })

  it('pauses nothing that no item and no worker names, unless it is told to', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    expect(await bench.said('pause', 'type', 'brokne')).toEqual({
      code: 1,
      out: '',
      err: 'No item has the type "brokne", and no worker handles it. Did you mean "broken"? Nothing was paused. To pause it anyway, add --force.\n',
    })
    expect(await bench.json('pause', 'type', 'brokne')).toEqual({
      what: 'type',
      name: 'brokne',
      isChanged: false,
      isKnown: false,
    })
    expect((await bench.said('overview')).out).not.toContain('paused')
    expect(await bench.json('log')).toEqual({ log: [] })
    expect(await bench.said('pause', 'type', 'new', '--force')).toMatchObject({ code: 0, out: 'Paused type new.\n' })
    expect((await bench.said('resume', 'type', 'new')).code).toBe(0)
  })

  it('resumes only what is paused, and says no otherwise', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    expect(await bench.said('resume', 'queue', 'default')).toEqual({
      code: 1,
      out: '',
      err: 'Queue default is not paused, so there is nothing to resume.\n',
    })
    expect((await bench.said('resume', 'type', 'brokne')).err).toContain('Did you mean "broken"?')
    expect(await bench.json('log')).toEqual({ log: [] })
  })
})

describe('the beginning of an id', () => {
  const ids = ['o-1', 'o-12', 'o-123', 'a%b', 'a_b', 'a*b', "it's 100 %", '注文-42', 'x\\y']
  /** Dead items with ids that people chose. */
  async function chosen(): Promise<Bench> {
    const backend = memoryBackend()
    const broken = defineWork('broken', (_: null) => {
      throw new PoisonError('never')
    })
    const work = createWork({ backend, work: [broken] as const })
    await Promise.all(ids.map((id) => work.enqueue(broken(null), { id }).group()))
    await work.stop()
    return new Bench({ backend })
  }

  it('is enough for commands that look', async () => {
    const { backend, dead } = await worked()
    const bench = new Bench({ backend })
    const [id = ''] = dead
    // The last characters are what tells UUIDs of one moment apart.
    const beginning = id.slice(0, -2)
    expect(await bench.json('show', beginning)).toMatchObject({ id })
    expect(await bench.json('explain', beginning)).toMatchObject({ id, reasons: [{ code: 'dead' }] })
    expect(await bench.said('explain', beginning)).toMatchObject({ code: 0, err: `${beginning} is ${id}.\n` })
  })

  it('may have any characters, and none of them stands for others', async () => {
    const bench = await chosen()
    for (const id of ids.slice(3)) {
      expect(await bench.json('show', id)).toMatchObject({ id })
      expect(await bench.json('show', id.slice(0, -1))).toMatchObject({ id })
    }
    expect((await bench.said('show', 'o%')).code).toBe(1)
    expect((await bench.said('show', '*')).code).toBe(1)
  })

  it('is not looked at where an item has exactly that id', async () => {
    const bench = await chosen()
    expect(await bench.json('show', 'o-1')).toMatchObject({ id: 'o-1' })
    expect(await bench.json('show', 'o-12')).toMatchObject({ id: 'o-12' })
  })

  it('names those that it could be, if it is that of several, and does nothing', async () => {
    const bench = await chosen()
    const { code, out, err } = await bench.said('redrive', 'o', '--yes')
    expect([code, out]).toEqual([2, ''])
    expect(err).toBe(
      'millrace: Several items have an id that begins with "o":\n  o-1\n  o-12\n  o-123\nType more of it.\n',
    )
    expect(await bench.json('list', 'state:dead')).toMatchObject({ items: { length: ids.length } })
  })

  it('names only the first of many', async () => {
    const { backend } = await worked()
    const work = createWork({ backend, work: [defineWork('later', (_: null) => 1)] as const, autoStart: false })
    for (let i = 0; i < 8; i += 1) await work.add('later', null, { id: `many-${i}` })
    await work.stop()
    const { err } = await new Bench({ backend }).said('cancel', 'many')
    expect(err.split('\n').filter((line) => line.startsWith('  '))).toHaveLength(6)
    expect(err).toContain('\n  and more\n')
  })

  it('is never acted on unasked', async () => {
    const bench = await chosen()
    const { code, err } = await bench.said('redrive', 'a%')
    expect(code).toBe(2)
    expect(err).toContain('Would redrive a%b. It cannot ask without a terminal')
    expect((await bench.said('redrive', 'a%', '--yes')).out).toBe('Redrove 1 item.\n')
    const asking = new Bench({ backend: bench.backend, terminal: { columns: 80, rows: 24 }, answer: 'y' })
    expect((await asking.said('discard', 'a_')).code).toBe(0)
    expect(asking.asked).toEqual(['discard a_b? [y/N] '])
    // A whole id needs no question, except from discard.
    expect((await bench.said('redrive', 'o-1')).code).toBe(0)
  })

  it('finds an unfinished action', async () => {
    const report = { verb: 'redrive', target: {}, who: 'ada', why: '', startedAt: 0, total: 1, done: 1, passed: 0 }
    const all = ['act-11', 'act-12', 'act-1'].map((id) => ({ ...report, id, state: 'done' }))
    const continued: string[] = []
    const ops = {
      actions: async () => all,
      continue: async (id: string) => {
        continued.push(id)
        return all[0]
      },
    }
    const bench = new Bench({ ops: ops as unknown as Ops })
    await bench.run('continue', 'act-11')
    await bench.run('continue', 'act-1')
    await bench.run('continue', 'old')
    expect(continued).toEqual(['act-11', 'act-1', 'old'])
    expect(await bench.said('continue', 'act')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Several actions'),
    })
  })
})

describe('what a run came to', () => {
  it('is cancelled, not a success, where it was cancelled while it ran', async () => {
    const backend = memoryBackend()
    const clock = new FakeClock()
    let isRunning = () => {}
    const running = new Promise<void>((resolve) => {
      isRunning = resolve
    })
    const endless = defineWork('endless', async (_: null, ctx) => {
      isRunning()
      await clock.sleep(1_000, ctx.signal)
    })
    const work = createWork({ backend, work: [endless] as const })
    const handle = work.enqueue(endless(null), { id: 'endless/1' })
    await running
    await work.cancel('endless/1', 'no longer wanted')
    await handle.group().catch(() => undefined)
    await work.stop()
    const bench = new Bench({ backend })
    expect(await bench.json('show', 'endless/1')).toMatchObject({
      state: 'cancelled',
      attempts: [{ attempt: 1, outcome: 'cancelled' }],
    })
    const { out } = await bench.said('show', 'endless/1')
    expect(out).toMatch(/^ +1 .* cancelled /m)
    expect(out).not.toContain('succe')
    // Being cancelled is no failure, and has no class.
    expect(out).toMatch(/^ended as +cancelled$/m)
    expect(await bench.json('list', 'state:cancelled')).toMatchObject({
      items: [expect.not.objectContaining({ class: expect.anything() })],
    })
    // What explain advises works.
    expect((await bench.said('explain', 'endless/1')).out).toContain('\n  millrace redrive endless/1')
    expect((await bench.said('redrive', 'endless/1')).code).toBe(0)
  })
})

describe('actions, log and schedules', () => {
  const action: ActionReport = {
    id: '01a1e2ac-a497-75e3-81a8-45e80968d97a',
    verb: 'redrive',
    target: { type: 'charge', tag: 'an import with a rather long name' },
    who: 'ada@a-machine-with-a-long-name.example.org',
    why: 'the bank is back',
    startedAt: 0,
    total: 1_000,
    done: 500,
    passed: 0,
    state: 'stopped',
    because: 'it was asked to stop; continue resumes it',
  }

  it('actions says why it was done, and apart from that why it stopped', async () => {
    const ops = { actions: async () => [action] } as unknown as Ops
    const wide = await new Bench({ ops }).said('actions')
    expect(wide.out).toMatch(/ why +stopped because\n.* the bank is back +it was asked to stop; continue resumes it\n$/)
    const narrow = await new Bench({ ops, terminal: { columns: 80, rows: 24 }, env: { NO_COLOR: '1' } }).said('actions')
    expect(narrow.out).toContain(`\n${action.id}  redrive  stopped`)
    expect(narrow.out).toContain('\n    why: the bank is back\n    stopped because: it was asked to stop;')
    for (const line of narrow.out.split('\n')) expect(widthOf(line)).toBeLessThan(80)
  })

  it('log shows the whole of what was done', async () => {
    const what = `redrive of type:charge class:retryable (action ${action.id}) stopped after 500 of 1000: it was asked to stop`
    const ops = { log: async () => [{ at: 0, who: action.who, why: action.why, what }] } as unknown as Ops
    const { out } = await new Bench({ ops, terminal: { columns: 80, rows: 24 }, env: { NO_COLOR: '1' } }).said('log')
    expect(out.replaceAll(/\s+/g, ' ')).toContain(what)
    expect(out).toContain(`    who: ${action.who}\n    why: the bank is back\n`)
    for (const line of out.split('\n')) expect(widthOf(line)).toBeLessThan(80)
  })

  it('schedules shows a zone once', async () => {
    const nightly = { name: 'nightly', nextAt: 0, fires: [0], changes: [], timeZone: 'Europe/Berlin' }
    const ops = {
      schedules: async () => [{ ...nightly, spec: 'TZ=Europe/Berlin 0 3 * * *', cron: '0 3 * * *' }],
    } as unknown as Ops
    const { out } = await new Bench({ ops }).said('schedules')
    expect(out.match(/Europe\/Berlin/g)).toHaveLength(1)
    expect(out).toContain('  0 3 * * *  ')
  })

  it('failures reads a long error from the item that has it', async () => {
    const backend = memoryBackend()
    const long = `${'a long error '.repeat(60)}that ends here\nand has a second line`
    const broken = defineWork('broken', (_: null) => {
      throw new PoisonError(long)
    })
    const work = createWork({ backend, work: [broken] as const })
    await work.enqueue(broken(null)).group()
    await work.stop()
    const bench = new Bench({ backend, terminal: { columns: 80, rows: 24 }, env: { NO_COLOR: '1' } })
    const { out } = await bench.said('failures')
    expect(out.replaceAll(/\s+/g, ' ')).toContain('that ends here and has a second line')
    expect(out).toContain('\n    and has a second line\n')
    expect(out).not.toContain('…')
  })
})

/** Ops whose one action takes as long as the test wants. */
function slowOps(done = 500): { ops: Ops; goOn: () => void; wasStopped: () => boolean } {
  const report: ActionReport = {
    id: 'act-1',
    verb: 'redrive',
    target: {},
    who: 'ada',
    why: '',
    startedAt: 0,
    total: 1_000,
    done,
    passed: 0,
    state: 'running',
  }
  let release = () => {}
  let wasStopped = false
  const redrive: Ops['redrive'] = async (_what, { dryRun, onProgress, signal }) => {
    if (dryRun === true) return { ...report, done: 0 }
    onProgress?.(report)
    await new Promise<void>((resolve) => {
      release = resolve
    })
    wasStopped = signal?.aborted === true
    return wasStopped
      ? { ...report, state: 'stopped', because: 'it was asked to stop' }
      : { ...report, done: 1_000, state: 'done' }
  }
  return { ops: { redrive } as unknown as Ops, goOn: () => release(), wasStopped: () => wasStopped }
}

describe('an action over many', () => {
  it('shows a bar on a terminal, and takes it away', async () => {
    const { ops, goOn } = slowOps()
    const bench = new Bench({ ops, terminal: { columns: 80, rows: 24 }, env: { NO_COLOR: '1' } })
    const running = bench.run('redrive', '--all', '--yes')
    await expect.poll(() => bench.err.text).toContain('50%  500 of 1,000')
    goOn()
    expect(await running).toBe(0)
    expect(bench.err.text.endsWith('\r\u001b[K')).toBe(true)
    expect(bench.out.text).toBe('Redrove 1,000 items.\n')
  })

  it('stops after the page when it is interrupted, and says how to go on', async () => {
    const { ops, goOn, wasStopped } = slowOps()
    const bench = new Bench({ ops })
    const running = bench.run('redrive', '--all', '--yes')
    await bench.listened()
    bench.interrupt()
    expect(bench.err.text).toContain('Stopping after this page')
    goOn()
    expect(await running).toBe(1)
    expect(wasStopped()).toBe(true)
    expect(bench.out.text).toBe(
      'Redrove 500 of 1,000 items.\nIt stopped early: it was asked to stop.\nContinue with: millrace continue act-1\n',
    )
  })

  it('stops immediately when it is interrupted twice', async () => {
    const { ops, goOn } = slowOps()
    const bench = new Bench({ ops })
    const running = bench.run('redrive', '--all', '--yes')
    await bench.listened()
    bench.interrupt()
    expect(bench.exits).toEqual([])
    bench.interrupt()
    expect(bench.exits).toEqual([130])
    goOn()
    await running
  })
})

describe('a canary', () => {
  it('shows what it waits for, and for how long', async () => {
    const clock = new FakeClock()
    const { ops, goOn } = slowOps(1)
    const bench = new Bench({ clock, ops, terminal: { columns: 100, rows: 24 }, env: { NO_COLOR: '1' } })
    const running = bench.run('redrive', '--all', '--yes', '--canary')
    await expect.poll(() => bench.err.text).toContain('0%  1 of 1,000')
    expect(bench.err.text).not.toContain('waiting')
    await clock.advance(7_000)
    expect(bench.err.text).toContain('1 of 1,000  waiting for the items sent ahead, 7 s\u001b[K')
    goOn()
    expect(await running).toBe(0)
    const before = bench.err.text
    await clock.advance(7_000)
    expect(bench.err.text).toBe(before)
  })

  it('says so in a log, too', async () => {
    const clock = new FakeClock()
    const { ops, goOn } = slowOps(1)
    const bench = new Bench({ clock, ops })
    const running = bench.run('redrive', '--all', '--yes', '--canary')
    await bench.listened()
    await clock.advance(21_000)
    expect(bench.err.text).toBe(
      'redrive: 1 of 1,000; waiting for the items sent ahead, 10 s\nredrive: 1 of 1,000; waiting for the items sent ahead, 20 s\n',
    )
    goOn()
    await running
  })
})

describe('commands to copy', () => {
  /** The lines below a remedy, run as they stand. */
  async function pasted(bench: Bench, ...args: string[]): Promise<readonly (readonly [string, number])[]> {
    const { out } = await bench.said(...args)
    const lines = [...out.matchAll(/^ +millrace (.*)$/gm)].map(([, words = '']) => words)
    const ended: [string, number][] = []
    for (const line of lines) {
      const words = line.split(' ')
      ended.push([words[0]!, (await bench.said(...words, ...(words[0] === 'discard' ? ['--yes'] : []))).code])
    }
    return ended
  }

  it('stand below every reason, and do what it says', async () => {
    const { backend, dead } = await worked()
    const bench = new Bench({ backend })
    const { items } = (await bench.json('list', 'state:scheduled')) as { items: { id: string }[] }
    // The second finds it redriven already: what was true a moment ago.
    expect(await pasted(bench, 'explain', dead[0]!)).toEqual([
      ['redrive', 0],
      ['discard', 1],
    ])
    // A stopped worker is no longer alive, which is a further reason.
    expect((await pasted(bench, 'explain', items[0]!.id)).slice(0, 2)).toEqual([
      ['run-now', 0],
      ['cancel', 0],
    ])
    await bench.run('pause', 'type', 'broken')
    expect(await pasted(bench, 'explain', dead[0]!)).toContainEqual(['resume', 0])
    expect((await bench.said('overview')).out).not.toContain('paused')
  })

  it('stand below the findings of doctor', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend })
    await bench.run('pause', 'queue', 'default')
    await bench.run('redrive', '--all', '--yes')
    expect(await pasted(bench, 'doctor')).toContainEqual(['resume', 0])
    expect((await bench.said('overview')).out).not.toContain('paused')
  })
})

describe('a schedule that is over', () => {
  it('has no next fire, instead of one at the end of time', async () => {
    const over = { name: 'sourdough', spec: 'next()', nextAt: 8_640_000_000_000_000, fires: [], changes: [] }
    const bench = new Bench({ ops: { schedules: async () => [over] } as unknown as Ops })
    const { out } = await bench.said('schedules')
    expect(out).toMatch(/sourdough +never +ended/)
    expect(out).not.toContain('275760')
  })
})

describe('a telephone', () => {
  it('shows what waits and what is dead, and fingerprints whole', async () => {
    const { backend } = await worked()
    const bench = new Bench({ backend, terminal: { columns: 40, rows: 12 }, env: { NO_COLOR: '1' } })
    expect((await bench.said('overview')).out).toMatch(/^queue +type +waiting +.*dead$/m)
    const { failures } = (await bench.json('failures')) as { failures: { fingerprint: string }[] }
    expect((await bench.said('failures')).out).toContain(` ${failures[0]!.fingerprint}\n`)
    for (const line of (await bench.said('doctor')).out.split('\n')) expect(widthOf(line)).toBeLessThan(40)
  })
})

describe('overview --watch', () => {
  it('prints a block for each refresh without a terminal', async () => {
    const clock = new FakeClock()
    const bench = new Bench({ clock })
    const running = bench.run('overview', '--watch', '--interval', '1s', '--times', '3')
    await clock.advance(5_000)
    expect(await running).toBe(0)
    expect(bench.out.text.match(/There is no work/g)).toHaveLength(3)
    expect(bench.out.text).not.toContain('\u001b')
  })

  it('prints one line of JSON for each refresh', async () => {
    const clock = new FakeClock()
    const bench = new Bench({ clock })
    const running = bench.run('overview', '--watch', '--json', '--times', '2')
    await clock.advance(5_000)
    await running
    const lines = bench.out.text.trimEnd().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { rows: unknown }).rows)).toEqual([[], []])
  })

  it('draws in place on a terminal, follows its size, and leaves it as it was', async () => {
    const clock = new FakeClock()
    const bench = new Bench({ clock, terminal: { columns: 60, rows: 10 } })
    const running = bench.run('overview', '--watch')
    await expect.poll(() => bench.out.text).toContain('\u001b[?1049h')
    await expect.poll(() => bench.isKeyboardFree).toBe(false)
    expect(bench.out.text).toContain('q quits')
    const drawn = () => bench.out.text.split('\u001b[H').length - 1
    const before = drawn()
    bench.resize(40, 8)
    expect(drawn()).toBe(before + 1)
    await clock.advance(2_000)
    expect(drawn()).toBeGreaterThan(before + 1)
    bench.press('x')
    bench.press('q')
    expect(await running).toBe(0)
    expect(bench.out.text).toContain('\u001b[?25h\u001b[?1049l')
    expect(bench.isKeyboardFree).toBe(true)
    // What was seen last is still to be read afterwards.
    expect(bench.out.text.split('\u001b[?1049l')[1]).toContain('There is no work')
  })

  it.each([
    ['an interrupt', (bench: Bench) => bench.interrupt()],
    ['no reader', (bench: Bench) => bench.closed.abort()],
  ])('ends with %s', async (_, end) => {
    const bench = new Bench({ clock: new FakeClock() })
    const running = bench.run('overview', '--watch')
    await expect.poll(() => bench.out.text).toContain('There is no work')
    end(bench)
    expect(await running).toBe(0)
  })

  it('shows a failed refresh, and continues', async () => {
    const clock = new FakeClock()
    let looks = 0
    const empty = { at: 0, rows: [], workers: [], paused: { queues: [], types: [] } }
    const overview = async () => {
      looks += 1
      if (looks === 2) throw new Error('the line is cut')
      return empty
    }
    const bench = new Bench({ clock, ops: { overview } as unknown as Ops })
    const running = bench.run('overview', '--watch', '--times', '3')
    await clock.advance(10_000)
    expect(await running).toBe(0)
    expect(bench.err.text).toBe('millrace: The last refresh failed: the line is cut\n')
  })
})

describe('doctor', () => {
  it('exits with 0 where all is sound, and with 1 where it found something', async () => {
    expect(await new Bench().said('doctor')).toMatchObject({
      code: 0,
      out: expect.stringContaining('No problems found. 3 checks could not be made.'),
    })
    const { out } = await new Bench().said('doctor')
    // Nothing unchecked is ticked.
    expect(out).toMatch(/^– workers +not checked: no worker is alive$/m)
    expect(out).toMatch(/^– leases /m)
    expect(out).toMatch(/^✓ pauses /m)
    const bench = new Bench({ facts: { storage: [{ part: 'work', version: 0, minReader: 0, latest: 1 }] } })
    expect((await bench.said('doctor')).code).toBe(1)
    expect(await bench.json('doctor')).toMatchObject({ isSound: false, findings: [{ code: 'no-tables' }] })
  })
})

describe('migrate --dry-run', () => {
  it.each([
    [{ version: 1, minReader: 1 }, 0, 'Nothing is pending.'],
    [{ version: 0, minReader: 0 }, 1, 'work: no tables yet, would be 1'],
    [{ version: 9, minReader: 9 }, 3, 'needs a program of version 9 or later'],
  ])('of %j ends with %i', async (found, code, says) => {
    const bench = new Bench({ facts: { storage: [{ part: 'work', latest: 1, ...found }] } })
    const ended = await bench.said('migrate', '--dry-run')
    expect(ended.code).toBe(code)
    expect(ended.out + ended.err).toContain(says)
  })
})

describe('an error', () => {
  const failing = (error: unknown) => new Bench({ ops: { overview: () => Promise.reject(error) } as unknown as Ops })

  it('is one sentence, without a stack trace unless --debug is given', async () => {
    const bench = failing(new Error('the disk\nis \u001b[1mfull'))
    const { code, err } = await bench.said('overview')
    expect([code, err]).toEqual([3, 'millrace: the disk\nis ␛[1mfull\n'])
    expect((await bench.said('overview', '--debug')).err).toMatch(/\n {4}at /)
  })

  it('is JSON for programs', async () => {
    const { err, out } = await failing(new Error('x')).said('overview', '--json')
    expect(out).toBe('')
    expect(JSON.parse(err)).toEqual({ error: { code: 'FAILED', message: 'x' } })
  })

  it('of the network says what is meant', async () => {
    const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', address: '::1', port: 5432 })
    expect((await failing(error).said('overview')).err).toContain('the connection was refused (ECONNREFUSED ::1 5432)')
    const host = Object.assign(new Error('x'), { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname: 'db.invalid' })
    expect((await failing(host).said('overview')).err).toContain(
      'there is no such host (ENOTFOUND getaddrinfo db.invalid)',
    )
    const both = Object.assign(new AggregateError([error], ''), {})
    expect((await failing(both).said('overview')).err).toContain('the connection was refused')
  })

  it('about an action says how those that there are can be seen', async () => {
    const { err } = await new Bench().said('continue', 'x', '--backend', 'sqlite:./other.db')
    expect(err).toContain('Help: millrace actions --backend sqlite:./other.db')
    // A command line cannot call a function.
    expect(err).not.toContain('ops.')
  })

  it('never shows a password', async () => {
    const bench = failing(new Error('cannot use postgres://ada:geheim@h/d with geheim'))
    const { err } = await bench.said('overview', '--backend', 'postgres://ada:geheim@h/d', '--debug')
    expect(err).not.toContain('geheim')
  })
})

describe('redact on the command line', () => {
  const moduleOf = (code: string): string => {
    const file = temporaryFile('redact.mjs')
    writeFileSync(file, code)
    return file
  }
  const hiding = "export default (value, { kind, type }) => '(' + kind + '-of-' + type + ')'"

  it('decides what list, failures, show and explain print, for people and for programs', async () => {
    const { backend, dead } = await worked()
    const file = moduleOf(hiding)
    const bench = new Bench({ backend })
    for (const command of [['list', 'state:dead'], ['failures'], ['show', dead[0]!, '--full'], ['explain', dead[0]!]]) {
      expect((await bench.said(...command)).out).toMatch(/no\s+such/)
      for (const more of [[], ['--json']]) {
        const { code, out } = await bench.said(...command, '--redact', file, ...more)
        expect(code).toBe(0)
        expect(out).toContain('(error-of-broken)')
        expect(out).not.toMatch(/no\s+such/)
      }
    }
    expect((await bench.said('show', dead[0]!, '--redact', file)).out).toContain('(input-of-broken)')
  })

  it('can be set once for every command by MILLRACE_REDACT, also as an export named redact', async () => {
    const { backend } = await worked()
    const file = moduleOf("export const redact = () => '(hidden)'")
    const bench = new Bench({ backend, env: { MILLRACE_REDACT: file } })
    const { out } = await bench.said('list', 'state:dead')
    expect(out).toContain('(hidden)')
    expect(out).not.toContain('no such thing')
  })

  it.each([
    ['is not there', () => './no-such-redact.mjs', 'cannot be loaded, so nothing is shown'],
    ['does not export a function', () => moduleOf('export default 5'), 'must export a function by default'],
    ['fails as it is loaded', () => moduleOf("throw new Error('broken module')"), 'broken module'],
  ])('refuses to show anything when the module %s', async (_, file, says) => {
    const { backend } = await worked()
    const { code, out, err } = await new Bench({ backend }).said('list', 'state:dead', '--redact', file())
    expect(code).toBe(2)
    expect(out).toBe('')
    expect(err).toContain('--redact')
    expect(err).toContain(says)
  })

  it('withholds what redact throws on, and continues', async () => {
    const { backend } = await worked()
    const file = moduleOf('export default (value) => { throw new Error(value) }')
    const { code, out, err } = await new Bench({ backend }).said('list', 'state:dead', '--redact', file)
    expect(code).toBe(0)
    expect(out).toContain('[withheld: redact() threw Error]')
    expect(`${out}${err}`).not.toContain('no such thing')
  })
})
