import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineContract, defineWork, PoisonError } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

interface Image {
  readonly url: string
  readonly at: Date
}

const resize = defineWork('resize', (name: string): Image => ({ url: `small-${name}`, at: new Date(5) }))

describe.each(GROUNDS)('what comes next (%s)', (ground) => {
  it('is built with the results of what came before', async () => {
    const seen: unknown[] = []
    const album = defineWork(
      'album',
      (input: { title: string; images: readonly Image[]; first: string; count: number }) => {
        seen.push(input)
        return input.images.length
      },
    )
    const publish = defineWork('publish', (names: readonly string[], ctx) =>
      ctx
        .queue(names.map((name) => resize(name)))
        .next((images) => album({ title: 'birds', images, first: images[0]!.url, count: images.length })),
    )
    const { w, until } = world(ground, { work: [publish, album, resize] })

    expect(await until(w.enqueue(publish(['owl', 'wren'])).group())).toBe(2)
    const images = [
      { url: 'small-owl', at: new Date(5) },
      { url: 'small-wren', at: new Date(5) },
    ]
    expect(seen).toEqual([{ title: 'birds', images, first: 'small-owl', count: 2 }])
  })

  it('goes on from link to link, with maps, sets and the builder itself', async () => {
    const seen: unknown[] = []
    const one = defineWork('one', () => ({ n: 1, deep: { list: ['a', 'b'] } }))
    const two = defineWork('two', (input: { all: Map<string, unknown>; set: Set<unknown> }) => {
      seen.push(input)
      return 2
    })
    const three = defineWork('three', ([n]: [number]) => {
      seen.push(n)
      return n + 1
    })
    const start = defineWork('start', (_: null, ctx) =>
      ctx
        .queue([one({})])
        .next(([first]) => two({ all: new Map([['b', first.deep.list[1]]]), set: new Set([first.n]) }))
        .next(three),
    )
    const { w, until } = world(ground, { work: [start, one, two, three] })

    await until(w.enqueue(start(null)).group())
    expect(seen).toEqual([{ all: new Map([['b', 'b']]), set: new Set([1]) }, 2])
  })

  it('is checked by its schema once the results are there', async () => {
    const Pages = z.object({ pages: z.array(z.number()) })
    const page = defineWork('page', (n: number) => n)
    const wrong = defineWork('wrong', () => 'no number' as unknown as number)
    const bind = defineWork(defineContract('bind', Pages), ({ pages }) => pages.length)
    const book = defineWork('book', (isRight: boolean, ctx) =>
      ctx.queue(isRight ? [page(1), page(2)] : [page(1), wrong({})]).next((pages) => bind({ pages })),
    )
    const { w, until } = world(ground, { work: [book, page, wrong, bind] })

    expect(await until(w.enqueue(book(true)).group())).toBe(2)
    await until(w.enqueue(book(false)).group())
    const dead = (await until(w.list({ status: 'dead' }))) as readonly { type: string; error?: string }[]
    expect(dead).toMatchObject([{ type: 'bind', error: expect.stringContaining('pages') }])
  })

  it('has undefined for what did not complete, where it does not wait for success', async () => {
    const seen: unknown[] = []
    const fails = defineWork('fails', (): number => {
      throw new PoisonError('no')
    })
    const after = defineWork('after', (input: { results: readonly unknown[] }) => {
      seen.push(input.results)
    })
    const start = defineWork('start', (_: null, ctx) =>
      ctx.queue([resize('owl'), fails({})]).next((results) => after({ results }), 'all-done'),
    )
    const { w, until } = world(ground, { work: [start, fails, after, resize] })

    await until(w.enqueue(start(null)).group())
    expect(seen).toEqual([[{ url: 'small-owl', at: new Date(5) }, undefined]])
  })

  it('cannot compute with results that do not exist yet', async () => {
    const sum = defineWork('sum', (n: number) => n)
    const wrongs: readonly ((result: Image) => unknown)[] = [
      (image) => `${image.url}`,
      (image) => image.url.toUpperCase(),
      (image) => Number(image.at) + 1,
      (image) => ({ ...image }),
      (image) => JSON.stringify(image),
      (image) => 'url' in image,
    ]
    const start = defineWork('start', (n: number, ctx) =>
      ctx.queue([resize('owl')]).next(([image]) => sum(wrongs[n]!(image) as number)),
    )
    const empty = defineWork('empty', (_: null, ctx) => ctx.queue([]).next(() => sum(1)))
    const nested = defineWork('nested', (_: null, ctx) => ctx.queue([ctx.queue([sum(1)])]).next(() => sum(1)))
    const { w, until } = world(ground, { work: [start, sum, empty, nested, resize] })

    const retry = { attempts: 1 }
    for (const n of wrongs.keys()) {
      await expect(until(w.enqueue(start(n), { retry }).result())).rejects.toThrow('known only when the gate opens')
    }
    for (const work of [empty(null), nested(null)])
      await expect(until(w.enqueue(work, { retry }).result())).rejects.toThrow('works must come before it')
  })
})

describe.each(GROUNDS)('ctx.results (%s)', (ground) => {
  it('gives the results of what the item waited for, typed by their types', async () => {
    const seen: unknown[] = []
    const count = defineWork('count', (n: number) => n * 2)
    const glue = defineWork('glue', async (_: null, ctx) => {
      const [image, n] = await ctx.results([resize, count])
      seen.push(image.url.length, n + 1, await ctx.results())
    })
    const start = defineWork('start', (_: null, ctx) => ctx.queue([resize('owl'), count(3)]).next(glue(null)))
    const { w, until } = world(ground, { work: [start, resize, count, glue] })

    await until(w.enqueue(start(null)).group())
    expect(seen).toEqual([9, 7, [{ url: 'small-owl', at: new Date(5) }, 6]])
  })

  it('says what is wrong with what it was asked for', async () => {
    const fails = defineWork('fails', (): number => {
      throw new PoisonError('broken')
    })
    const other = defineWork('other', () => 1)
    const asks = defineWork('asks', async (which: number, ctx) => {
      if (which === 0) await ctx.results([other, other])
      if (which === 1) await ctx.results([resize])
      if (which === 2) await ctx.results([resize, fails])
      await ctx.results([{ ...other({}), id: 'unknown' }])
    })
    const start = defineWork('start', (which: number, ctx) =>
      ctx.queue([resize('owl'), fails({})]).next(asks(which), 'all-done', { retry: { attempts: 1 } }),
    )
    const { w, until } = world(ground, { work: [start, resize, fails, other, asks] })

    const texts = ['is of type "resize", not "other"', 'one is needed for each item', 'broken', 'no longer kept']
    for (const [which, text] of texts.entries()) {
      const before = (await until(w.list({ type: 'asks' }))).map(({ id }) => id)
      await until(w.enqueue(start(which)).group())
      const asked = (await until(w.list({ type: 'asks' }))).find(({ id }) => !before.includes(id))
      // Asking for the wrong works is a mistake in the program: another attempt cannot help.
      const ending = which < 2 ? 'aborted' : 'exhausted'
      expect(asked).toMatchObject({ status: 'dead', ending, error: expect.stringContaining(text) })
    }
  })
})
