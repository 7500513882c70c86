import { createWork, defineWork, memoryBackend, PoisonError } from 'millrace'
import { openOps, type Redact, type RedactAbout } from 'millrace/ops'
import { FakeClock } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'

const SECRET = 's3cret'
type Secret = { readonly card: string }

const fine = defineWork('fine', ({ card }: Secret, ctx) => ctx.result(card))
const runs = defineWork('runs', async ({ card }: Secret, ctx) => {
  ctx.progress({ card })
  return new Promise<never>(() => undefined)
})
const dies = defineWork('dies', ({ card }: Secret) => {
  throw new PoisonError(`card ${card} is refused\nand the second line says ${card}`)
})
const retries = defineWork('retries', ({ card }: Secret) => Promise.reject(new Error(`no answer for ${card}`)), {
  retry: { attempts: 3, base: 600_000, jitter: 0 },
})

/** One item of each, and every answer of ops that can tell of them. */
async function scene() {
  const clock = new FakeClock()
  const backend = memoryBackend({ clock })
  const w = createWork({ backend, clock, work: [fine, runs, dies, retries], stopDrain: 0 })
  onTestFinished(async () => {
    const stopped = w.stop()
    await clock.advance(1_000)
    await stopped
  })
  const ids: string[] = []
  for (const work of [fine, runs, dies, retries]) ids.push((await w.enqueue(work({ card: SECRET })).accepted()).id)
  const cancelled = await w.enqueue(fine({ card: SECRET }), { delay: 60_000 }).accepted()
  ids.push(cancelled.id)
  await w.cancel(cancelled.id, `the owner of ${SECRET} asked`)
  await clock.advance(10_000)
  const answers = async (redact?: Redact) => {
    const ops = openOps(backend, { clock, ...(redact && { redact }) })
    const [list, failures, items, reasons] = await Promise.all([
      ops.list(),
      ops.failures(),
      Promise.all(ids.map((id) => ops.item(id))),
      Promise.all(ids.map((id) => ops.explain(id))),
    ])
    return { list, failures, items, reasons }
  }
  return { w, backend, clock, ids, answers }
}

describe('redact', () => {
  it('sees every payload and every error before a person does, with its kind, type and item', async () => {
    const { answers, ids } = await scene()
    const asked: (RedactAbout & { readonly value: string })[] = []

    const shown = await answers((value, about) => {
      asked.push({ ...about, value })
      return value.replaceAll(SECRET, '****')
    })

    expect(JSON.stringify(shown)).not.toContain(SECRET)
    // It is there without redact: in what was asked above there was something to hide.
    const raw = JSON.stringify(await answers())
    expect(raw.split(SECRET).length).toBeGreaterThan(10)
    const [done, active, dead, retrying, cancelled] = shown.items
    expect(done).toMatchObject({ result: '"****"', group: { value: '"****"' } })
    expect(active).toMatchObject({ input: '{"card":"****"}', progress: '{"card":"****"}' })
    expect(dead?.error).toBe('PoisonError: card **** is refused\nand the second line says ****')
    expect(dead?.attempts[0]?.error).toBe(dead?.error)
    expect(dead?.timeline.at(-1)?.text).toContain('card **** is refused')
    expect(retrying?.attempts[0]?.error).toBe('Error: no answer for ****')
    expect(cancelled?.error).toBe('cancelled: the owner of **** asked')
    expect(new Set(asked.map(({ kind }) => kind))).toEqual(new Set(['input', 'result', 'progress', 'error', 'group']))
    const abouts = asked.map(({ kind, type, id }) => ({ kind, type, id }))
    expect(abouts).toContainEqual({ kind: 'result', type: 'fine', id: ids[0] })
    expect(abouts).toContainEqual({ kind: 'progress', type: 'runs', id: ids[1] })
    expect(abouts).toContainEqual({ kind: 'error', type: 'dies', id: ids[2] })
  })

  it('sees the reason of a cancel, also while the item still runs', async () => {
    const { w, backend, clock, ids, answers } = await scene()
    await w.cancel(ids[1]!, `the owner of ${SECRET} asked`)
    const { list, items, reasons } = await answers((value) => value.replaceAll(SECRET, '****'))

    expect(JSON.stringify([list, items, reasons])).not.toContain(SECRET)
    const ops = openOps(backend, { clock, redact: (value) => value.replaceAll(SECRET, '****') })
    expect((await ops.log()).map(({ why }) => why)).toEqual(Array(2).fill('the owner of **** asked'))
    expect(items[1]).toMatchObject({ status: 'running', cancelReason: 'the owner of **** asked' })
    expect(JSON.stringify(reasons[1])).toContain('the owner of **** asked')
  })

  it.each<[string, Redact, string]>([
    [
      'throws an error that quotes the value',
      (value) => {
        throw new TypeError(value)
      },
      '[withheld: redact() threw TypeError]',
    ],
    [
      'throws the value itself',
      (value) => {
        throw value
      },
      '[withheld: redact() threw string]',
    ],
    ['returns nothing', () => undefined as never, '[withheld: redact() returned undefined instead of a text]'],
    [
      'returns a promise',
      (async (value: string) => value) as never,
      '[withheld: redact() returned object instead of a text]',
    ],
    [
      'returns a promise that rejects',
      (async (value: string) => Promise.reject(new Error(value))) as never,
      '[withheld: redact() returned object instead of a text]',
    ],
  ])('that %s lets nothing out, and every call is answered', async (_, redact, placeholder) => {
    const { answers } = await scene()

    const shown = await answers(redact)

    expect(JSON.stringify(shown)).not.toContain(SECRET)
    const [done, active, dead] = shown.items
    expect(done).toMatchObject({ result: placeholder, group: { value: placeholder } })
    expect(active).toMatchObject({ input: placeholder, progress: placeholder })
    expect(dead).toMatchObject({ error: placeholder, attempts: [{ error: placeholder }] })
    expect(shown.list.items.find(({ type }) => type === 'dies')?.error).toBe(placeholder)
    expect(shown.failures.map(({ sample }) => sample.error)).toEqual([placeholder, placeholder])
  })

  it('is not needed for what is stored of a bulk action: neither its report nor the log quotes an error', async () => {
    const { backend, clock } = await scene()
    const ops = openOps(backend, { clock })
    const redriven = ops.redrive({ state: 'dead' }, { who: 'me', why: 'again', canary: true })
    await clock.advance(60_000)

    const report = await redriven

    expect(report.because).toContain('failed again with the same fingerprint')
    expect(JSON.stringify([report, await ops.actions(), await ops.log()])).not.toContain('refused')
  })
})

describe('an error in a list', () => {
  it('is one short line, cut after redact has seen more of it', async () => {
    const clock = new FakeClock()
    const backend = memoryBackend({ clock })
    const number = '4111111111111111'
    // The number begins within the characters that are shown, and ends behind them.
    const long = defineWork('long', () => {
      throw new PoisonError(`${'x'.repeat(275)}${number}${'y'.repeat(9_000)}\nsecond line`)
    })
    const w = createWork({ backend, clock, work: [long], stopDrain: 0 })
    await w.enqueue(long(undefined)).accepted()
    await clock.advance(100)
    const errorOf = async (redact?: Redact) => {
      const { items } = await openOps(backend, { clock, ...(redact && { redact }) }).list()
      return items[0]?.error ?? ''
    }

    expect(await errorOf()).toHaveLength(301)
    expect(await errorOf()).toMatch(/^PoisonError: x+411111.*…$/)
    expect(await errorOf((value) => value.replace(/\d{16}/, '####'))).not.toContain('41')
    expect((await w.list())[0]?.error).toHaveLength(501)
    const stopped = w.stop()
    await clock.advance(1_000)
    await stopped
  })
})
