import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lockFiles, missingBuilds } from '../../scripts/lib/lock-file.mjs'
import { root } from '../../scripts/lib/root.mjs'

describe('a build for another platform that the lock file leaves out', () => {
  it('is found, with the version that was asked for and the platform of its name', () => {
    const packages = {
      'node_modules/tool': {
        version: '1.2.0',
        dev: true,
        optionalDependencies: { '@tool/linux-x64-gnu': '1.2.0', '@tool/darwin-arm64': '1.2.0' },
      },
      'node_modules/@tool/linux-x64-gnu': { version: '1.2.0' },
    }

    expect(missingBuilds(packages)).toEqual({
      'node_modules/@tool/darwin-arm64': {
        version: '1.2.0',
        dev: true,
        optional: true,
        cpu: ['arm64'],
        os: ['darwin'],
      },
    })
  })

  it('is told apart by its C library', () => {
    const offered = { 'tool-linux-x64-musl': '1.0.0', 'tool-linux-arm-gnueabihf': '1.0.0', 'tool-wasm32-wasi': '1.0.0' }

    expect(missingBuilds({ 'node_modules/tool': { optionalDependencies: offered } })).toMatchObject({
      'node_modules/tool-linux-x64-musl': { cpu: ['x64'], libc: ['musl'], os: ['linux'] },
      'node_modules/tool-linux-arm-gnueabihf': { cpu: ['arm'], libc: ['glibc'], os: ['linux'] },
      'node_modules/tool-wasm32-wasi': { cpu: ['wasm32'] },
    })
  })

  it('goes beside the package that offers it', () => {
    const nested = { optionalDependencies: { 'tool-win32-x64': '2.0.0' } }

    expect(Object.keys(missingBuilds({ 'node_modules/a/node_modules/@scope/tool': nested }))).toEqual([
      'node_modules/a/node_modules/tool-win32-x64',
    ])
  })

  it('is not missing when it lies in a folder above', () => {
    const packages = {
      'node_modules/a/node_modules/tool': { optionalDependencies: { 'tool-win32-x64': '2.0.0' } },
      'node_modules/tool-win32-x64': { version: '2.0.0' },
    }

    expect(missingBuilds(packages)).toEqual({})
  })

  it('is refused when its platform or its version is not known', () => {
    const offering = (name: string, version: string) => ({
      'node_modules/a': { optionalDependencies: { [name]: version } },
    })

    expect(() => missingBuilds(offering('fsevents', '2.3.3'))).toThrow(/fsevents .* add it by hand/)
    expect(() => missingBuilds(offering('tool-win32-x64', '^2.0.0'))).toThrow(/not exact: add it by hand/)
  })
})

describe.each(lockFiles)('%s', (file) => {
  const text = readFileSync(join(root, file), 'utf8')
  const { packages } = JSON.parse(text) as { packages: Parameters<typeof missingBuilds>[0] }

  it('lists every build for every platform; if not, run node scripts/complete-lock.mjs', () => {
    expect(Object.keys(missingBuilds(packages))).toEqual([])
  })

  it('names no host', () => {
    expect(text).not.toContain('"resolved"')
  })
})
