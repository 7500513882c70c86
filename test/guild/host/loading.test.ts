import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createGuild, type GuildOptions, type StartedGuild } from 'millrace/guild'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findRoot } from '../../../src/guild/host/config-file.js'
import { kit, part } from './plugins.js'

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'millrace-guild-'))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

function file(path: string, contents: string | object): void {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), typeof contents === 'string' ? contents : JSON.stringify(contents))
}

function installed(name: string, manifest: object, files: Readonly<Record<string, string>>): void {
  file(`node_modules/${name}/package.json`, { name, version: '1.0.0', ...manifest })
  for (const [path, text] of Object.entries(files)) file(`node_modules/${name}/${path}`, text)
}

const SAYS = (word: string) => `{ apparatus: { provides: { word: '${word}' }, start() {} } }`

async function during<R>(options: GuildOptions, inspect: (g: StartedGuild) => R | Promise<R>): Promise<R> {
  const g = await createGuild(options)
  try {
    return await inspect(g)
  } finally {
    await g.shutdown()
  }
}

const config = () => JSON.parse(readFileSync(join(home, 'guild.json'), 'utf8'))

describe('plugins of guild.json', () => {
  it('are packages beside it, however they are packed', async () => {
    file('guild.json', {
      plugins: ['esm-only', '@acme/cjs-kit', 'old-plugin', 'acme/deep', '@acme/many/second-apparatus', 'babel-kit'],
    })
    file('package.json', { dependencies: { '@acme/deep-apparatus': '1' } })
    installed(
      'esm-only',
      { type: 'module', exports: { '.': { types: './no.d.ts', import: './esm.js' } } },
      {
        'esm.js': `export default ${SAYS('esm')}`,
      },
    )
    installed('@acme/cjs-kit', { exports: './index.cjs' }, { 'index.cjs': `module.exports = { kit: { tools: 1 } }` })
    installed('old-plugin', { main: './lib/main.js' }, { 'lib/main.js': `module.exports = ${SAYS('old')}` })
    installed(
      '@acme/deep-apparatus',
      { exports: { node: { default: './deep.mjs' } } },
      {
        'deep.mjs': `export default ${SAYS('deep')}`,
      },
    )
    installed(
      '@acme/many',
      { type: 'module', exports: { './*': [{ import: './dist/*.js' }] } },
      {
        'dist/second-apparatus.js': `export default ${SAYS('second')}`,
      },
    )
    installed(
      'babel-kit',
      {},
      {
        'index.js': `Object.defineProperty(exports, '__esModule', { value: true }); exports.default = { kit: { tools: 2 } }`,
      },
    )

    await during({ root: home }, (g) => {
      expect(g.failedPlugins()).toEqual([])
      expect(
        ['esm-only', 'old', 'acme/deep', 'acme/many/second'].map((id) => g.apparatus<{ word: string }>(id).word),
      ).toEqual(['esm', 'old', 'deep', 'second'])
      expect(g.kits().map(({ id, kit: { tools } }) => [id, tools])).toEqual([
        ['acme/cjs', 1],
        ['babel', 2],
      ])
    })
  })

  it('that cannot be loaded are left out, each with its reason, and their dependants know', async () => {
    file('guild.json', { plugins: ['absent', 'broken', 'shapeless', './here.js', 'listless', 'name'] })
    installed('broken', { type: 'module', main: 'index.js' }, { 'index.js': `throw new Error('cracked')` })
    installed('shapeless', { type: 'module', main: 'index.js' }, { 'index.js': `export default { apparatus: {} }` })
    installed(
      'listless',
      { type: 'module', main: 'index.js' },
      { 'index.js': `export default { kit: { requires: 'a' } }` },
    )

    await during({ root: home, plugins: [part('a', [], { requires: ['broken'] })], strict: false }, (g) => {
      expect(g.failedPlugins()).toEqual([
        { id: 'absent', reason: `cannot be found from ${home}: install the package "absent"` },
        { id: 'broken', reason: 'could not be imported: cracked' },
        { id: 'shapeless', reason: 'is not a plugin: its apparatus has no function "start"' },
        { id: './here.js', reason: `cannot be found from ${home}: install the package "./here.js"` },
        { id: 'listless', reason: 'is not a plugin: kit.requires must be an array of non-empty strings' },
        { id: 'name', reason: 'would have the id "name", which is a key of guild.json itself' },
        { id: 'a', reason: 'requires "broken", which failed to load' },
      ])
      expect(g.startupWarnings()).toContain('The plugin "broken" was left out: it could not be imported: cracked.')
    })
  })

  it('may not share an id', async () => {
    const twice = createGuild({ plugins: [kit('left-kit', {}), kit('left-plugin', {})] })
    await expect(twice).rejects.toMatchObject({
      code: 'DUPLICATE_PLUGIN',
      message: expect.stringMatching(/"left-kit" and "left-plugin" both have the id "left"/),
    })
    await expect(createGuild({ plugins: [kit('left', {}), kit('left', {})] })).rejects.toThrow('listed twice')
  })
})

describe('the folder of a guild', () => {
  it('is the nearest that holds guild.json', () => {
    file('guild.json', {})
    mkdirSync(join(home, 'a', 'b'), { recursive: true })
    expect(findRoot(join(home, 'a', 'b'))).toBe(home)
    rmSync(join(home, 'guild.json'))
    expect(() => findRoot(join(home, 'a', 'b'))).toThrow('there is no guild.json here or in a folder above')
  })

  it('must have a usable one', async () => {
    await expect(createGuild({ root: home })).rejects.toMatchObject({ code: 'BAD_GUILD_CONFIG' })
    file('guild.json', '{ "plugins": ')
    await expect(createGuild({ root: home })).rejects.toThrow(/it is not JSON/)
    file('guild.json', { plugins: 'stacks' })
    await expect(createGuild({ root: home })).rejects.toThrow(/guild\.json\.plugins must be an array/)
    file('guild.json', { officialScopes: ['acme'] })
    await expect(createGuild({ root: home })).rejects.toThrow(/officialScopes must be/)
  })
})

describe('createGuild() given something else', () => {
  it.each([
    [{ plugin: [] }, /"plugin" is not an option of createGuild\(\)\. Did you mean "plugins"\?/],
    [{ plugins: [5] }, /plugins\[0\] must be the name of a package/],
    [{ plugins: [{ package: '', plugin: {} }] }, /plugins\[0\]\.package must be/],
    [{ config: [] }, /config must be an object/],
    [{ plugins: [], strict: 'yes' }, /strict must be true or false/],
    [{ plugins: [], clock: 5 }, /Clock/],
  ])('%j says what it takes', async (options, message) => {
    await expect(createGuild(options as GuildOptions)).rejects.toThrow(message)
  })
})

describe('names in the configuration that mean nothing', () => {
  it('fail the start, of a plugin with the one that was probably meant', async () => {
    file('guild.json', { plugins: ['stacks', 'spidr'] })
    await expect(createGuild({ root: home })).rejects.toMatchObject({
      code: 'PLUGINS_FAILED',
      message: expect.stringMatching(/"spidr" cannot be found from .* \(did you mean "spider"\?\)/),
    })
  })

  it('fail the start, of a section with the one that was probably meant', async () => {
    file('guild.json', { plugins: [], spyder: { maxConcurrentEngines: 5 } })
    await expect(createGuild({ root: home, plugins: [kit('k', {})] })).rejects.toMatchObject({
      code: 'BAD_GUILD_CONFIG',
      message: expect.stringMatching(/guild\.json: "spyder" is .* \(did you mean "spider"\?\), so nothing reads/),
    })
    await expect(createGuild({ config: { plugin: ['stacks'] } })).rejects.toThrow('did you mean "plugins"?')
  })

  it('are a warning where they are of a built-in plugin that is not listed', async () => {
    await during({ config: { spider: {} }, plugins: [kit('k', {})] }, (g) =>
      expect(g.startupWarnings()).toEqual([expect.stringContaining('"spider" is configured and not loaded')]),
    )
  })

  it('are ignored on request', async () => {
    await during({ config: { plugins: ['spidr'], spyder: {} }, strict: false }, (g) =>
      expect(g.failedPlugins()).toMatchObject([{ id: 'spidr' }]),
    )
  })
})

describe('configuration', () => {
  it('is what guild.json has under the id, or empty', async () => {
    file('guild.json', { name: 'mill', a: { depth: 3 } })
    await during({ root: home, strict: false }, (g) => {
      expect(g.config('a')).toEqual({ depth: 3 })
      expect(g.config('b')).toEqual({})
      expect(g.guildConfig()).toEqual({ name: 'mill', a: { depth: 3 } })
      expect(g.home).toBe(home)
    })
  })

  it('is written to memory and, in one step, to disk, and leaves no other file', async () => {
    file('real/guild.json', { a: 1, plugins: [] })
    symlinkSync(join(home, 'real', 'guild.json'), join(home, 'guild.json'))
    await during({ root: home, strict: false }, (g) => {
      g.writeConfig('b', { deep: [1, undefined] })
      expect(g.config('b')).toEqual({ deep: [1, null] })
      expect(config()).toEqual({ a: 1, plugins: [], b: { deep: [1, null] } })
      g.writeConfig('a', undefined)
      expect(config()).toEqual({ plugins: [], b: { deep: [1, null] } })
      expect(readdirSync(join(home, 'real'))).toEqual(['guild.json'])
      expect(readdirSync(home).sort()).toEqual(['guild.json', 'real'])
    })
  })

  it('keeps what others wrote meanwhile, and does not overwrite their change of the same part', async () => {
    file('guild.json', { a: 1, b: 1 })
    await during({ root: home, strict: false }, (g) => {
      file('guild.json', { a: 2, b: 1, c: 3 })
      g.writeConfig('b', 5)
      expect(config()).toEqual({ a: 2, b: 5, c: 3 })
      expect(g.config('a')).toBe(2)
      file('guild.json', { a: 2, b: 6 })
      expect(() => g.writeConfig('b', 7)).toThrow(expect.objectContaining({ code: 'CONFIG_CHANGED' }))
      expect(config()).toEqual({ a: 2, b: 6 })
      expect(g.config('b')).toBe(5)
    })
  })

  it('refuses what cannot be kept, and leaves everything as it was', async () => {
    file('guild.json', { a: 1 })
    const circle: { self?: unknown } = {}
    circle.self = circle
    await during({ root: home, strict: false }, (g) => {
      expect(() => g.writeConfig('a', circle)).toThrow('a value that JSON can hold')
      expect(() => g.writeConfig('a', () => 1)).toThrow('a value that JSON can hold')
      expect(() => g.writeConfig('plugins', [])).toThrow('not a key of the host')
      expect(() => g.writeConfig('', 1)).toThrow('non-empty string')
      expect(config()).toEqual({ a: 1 })
      expect(g.config('a')).toBe(1)
    })
  })

  it('that was given stays in memory, and the given object as it was', async () => {
    const given = { a: { one: 1 } }
    await during({ root: home, config: given, strict: false }, (g) => {
      g.writeConfig('a', { two: 2 })
      expect(g.config('a')).toEqual({ two: 2 })
    })
    expect(given).toEqual({ a: { one: 1 } })
    expect(readdirSync(home)).toEqual([])
  })

  it('is begun on disk when a folder and plugins were given', async () => {
    await during({ root: home, plugins: [kit('k', {})] }, (g) => g.writeConfig('k', { x: 1 }))
    expect(config()).toEqual({ k: { x: 1 } })
  })
})
