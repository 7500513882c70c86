import fc from 'fast-check'
import { createGuild, type PluginSource } from 'millrace/guild'
import fabricator, {
  collected,
  type EngineDesign,
  type EngineRetry,
  type FabricatorApi,
  lostInJson,
  resolveEngineRetry,
} from 'millrace/guild/fabricator'
import { describe, expect, it } from 'vitest'
import { kit, part } from '../host/plugins.js'

const FABRICATOR: PluginSource = { package: 'millrace/guild/fabricator', plugin: fabricator }

const design = (id: string, rest: Partial<EngineDesign> = {}): EngineDesign => ({
  id,
  run: async () => ({ status: 'completed', yields: {} }),
  ...rest,
})

async function catalogue(...plugins: readonly PluginSource[]): Promise<FabricatorApi> {
  const g = await createGuild({ plugins: [FABRICATOR, ...plugins] })
  try {
    return g.apparatus<FabricatorApi>('fabricator')
  } finally {
    await g.shutdown()
  }
}

describe('the catalogue of engine designs', () => {
  it('has those of kits and of apparatuses, and leaves out what is none', async () => {
    const greet = design('greet')
    const found = await catalogue(
      kit('@acme/tools-kit', { engines: { greet, notes: 'text', half: { id: 'half' }, nameless: { run() {} } } }),
      part('press', [], { supportKit: { engines: { print: design('print', { collect: async () => 1 }) } } }),
      kit('odd', { engines: null }),
    )

    expect(found.listEngineDesigns()).toEqual([
      { id: 'greet', pluginId: 'acme/tools', hasCollect: false },
      { id: 'print', pluginId: 'press', hasCollect: true },
    ])
    expect(found.getEngineDesign('greet')).toBe(greet)
    expect(found.getEngineDesign('half')).toBeUndefined()
  })

  it('fails startup over two designs of one id, and names both contributors', async () => {
    const both = catalogue(kit('one', { engines: { a: design('x') } }), kit('two', { engines: { b: design('x') } }))
    await expect(both).rejects.toMatchObject({
      code: 'DUPLICATE_ENGINE_DESIGN',
      message: expect.stringContaining('"one" and "two" both'),
    })
    await expect(catalogue(kit('one', { engines: { a: design('x'), b: design('x') } }))).rejects.toThrow(
      '"one" contributes it twice',
    )
  })

  it('fails startup over a section of the configuration, of which it reads nothing', async () => {
    await expect(createGuild({ config: { fabricator: { engines: {} } }, plugins: [FABRICATOR] })).rejects.toThrow(
      '"engines" is not an option of guild.json.fabricator',
    )
  })

  it('fails startup over a retry policy that cannot be kept', async () => {
    const bad = catalogue(kit('one', { engines: { a: design('x', { retry: { maxAttempts: -1 } }) } }))
    await expect(bad).rejects.toThrow('one: engine design "x".retry.maxAttempts must be an integer >= 0, got -1')
  })

  it('is loaded by its name, a new one for each guild', async () => {
    const guilds = await Promise.all(
      [1, 2].map((n) =>
        createGuild({
          config: { plugins: ['fabricator'] },
          plugins: [kit(`k${n}`, { engines: { a: design(`x${n}`) } })],
        }),
      ),
    )
    const ids = guilds.map((g) =>
      g
        .apparatus<FabricatorApi>('fabricator')
        .listEngineDesigns()
        .map(({ id }) => id),
    )
    expect(ids).toEqual([['x1'], ['x2']])
    for (const g of guilds) await g.shutdown()
  })
})

describe('the retry of a design', () => {
  it('has the defaults: none at all, or 30 s doubling to 10 min', () => {
    expect(resolveEngineRetry(undefined)).toMatchObject({ maxAttempts: 0 })
    expect(resolveEngineRetry({ retries: 3 })).toEqual(resolveEngineRetry({ maxAttempts: 3 }))
    expect(resolveEngineRetry({ maxAttempts: 3 })).toEqual({
      maxAttempts: 3,
      backoff: { initialMs: 30_000, maxMs: 600_000, factor: 2 },
    })
  })

  it.each([
    [{}, /retries is required/],
    [{ retries: -1 }, /retries must be/],
    [{ maxAttempts: 1.5 }, /maxAttempts must be an integer/],
    [{ maxAttempts: 1, backoff: { initialMs: 10, maxMs: 5 } }, /maxMs must be at least initialMs \(10\)/],
    [{ maxAttempts: 1, backoff: { initialMs: 700_000 } }, /maxMs must be at least initialMs/],
    [{ maxAttempts: 1, backoff: { factor: 1 } }, /factor must be a finite number > 1/],
    [{ maxAttempts: 1, backoff: { factor: Infinity } }, /factor must be/],
    [{ maxAttempts: 1, retries: 2 }, /maxAttempts must be left out: retries means the same/],
  ])('%j is refused', (retry, message) => {
    expect(() => resolveEngineRetry(retry as EngineRetry)).toThrow(message)
  })
})

describe('yields that survive JSON', () => {
  it.each([
    [undefined, 'yields is undefined'],
    [() => 1, 'yields is a function'],
    [{ a: [1n] }, 'yields.a[0] is a bigint'],
    [{ a: { b: undefined } }, 'yields.a.b is undefined'],
    [[Number.NaN], 'yields[0] is NaN'],
    [{ at: new Date(0) }, 'yields.at is not a plain object'],
    [{ m: new Map() }, 'yields.m is not a plain object'],
    [{ toJSON: () => 1 }, 'yields has its own toJSON'],
    [Object.assign([1], { length: 3 }), 'yields is an array with gaps or names'],
    [-0, 'yields is -0'],
  ])('are not %o', (value, problem) => {
    expect(lostInJson(value)).toBe(problem)
  })

  it('are not those that contain themselves, but the same object twice is fine', () => {
    const circle: Record<string, unknown> = {}
    circle['self'] = { circle }
    expect(lostInJson(circle)).toBe('yields.self.circle contains itself')
    const shared = { a: 1 }
    expect(lostInJson({ one: shared, two: shared })).toBeUndefined()
  })

  it('are exactly those that come back equal', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withDate: true,
          withMap: true,
          withBigInt: true,
          withSparseArray: true,
          withNullPrototype: false,
        }),
        (value) => {
          if (lostInJson(value) !== undefined) return
          expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value)
        },
      ),
      { numRuns: 1000 },
    )
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value))
        expect(lostInJson(plain)).toBeUndefined()
      }),
      { numRuns: 1000 },
    )
  })
})

describe('what collect returns', () => {
  it('is a graft when it has an array of that name, and plain yields otherwise', () => {
    expect(collected({ yields: 1, graft: [], graftTail: 'x' })).toEqual({ yields: 1, graft: [], graftTail: 'x' })
    expect(collected({ yields: 1, graft: 'no' })).toEqual({ yields: { yields: 1, graft: 'no' } })
    expect(collected(null)).toEqual({ yields: null })
  })
})
