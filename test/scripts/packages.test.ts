import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { assertNodeVersion, whyInstall } from '../../scripts/lib/packages.mjs'

let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-packages-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

const locked = {
  '': { version: '0.0.0' },
  'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
  'node_modules/b-for-another-platform': { version: '1.0.0', integrity: 'sha512-b', optional: true },
}

function lay(installed: Readonly<Record<string, unknown>> | undefined): void {
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: locked }))
  if (installed === undefined) return
  mkdirSync(join(folder, 'node_modules'))
  writeFileSync(join(folder, 'node_modules', '.package-lock.json'), JSON.stringify({ packages: installed }))
}

describe('packages', () => {
  it('are installed on a fresh clone', () => {
    lay(undefined)

    expect(whyInstall(folder)).toContain('missing')
  })

  it('are installed again after an installation that never ended', () => {
    lay(undefined)
    mkdirSync(join(folder, 'node_modules', 'a'), { recursive: true })

    expect(whyInstall(folder)).toContain('incomplete')
  })

  it('are left alone when they are those of the lock file', () => {
    lay({ 'node_modules/a': locked['node_modules/a'] })

    expect(whyInstall(folder)).toBeUndefined()
  })

  it('are installed again when the lock file moved on', () => {
    lay({ 'node_modules/a': { version: '0.9.0', integrity: 'sha512-old' } })

    expect(whyInstall(folder)).toBe('node_modules/a is 0.9.0, package-lock.json has 1.0.0')
  })

  it('are installed again when one is missing', () => {
    lay({})

    expect(whyInstall(folder)).toBe('node_modules/a is not installed')
  })

  it('are installed again for another Node, whose native modules differ', () => {
    lay({ 'node_modules/a': locked['node_modules/a'] })
    writeFileSync(join(folder, 'node_modules', '.millrace-built-for'), 'linux-x64 modules-1')

    expect(whyInstall(folder)).toContain('built for linux-x64 modules-1')
  })
})

describe('a Node that is too old', () => {
  it('is refused with the version that is needed', () => {
    expect(() => assertNodeVersion('20.18.3')).toThrow('needs Node 20.19 or newer; this is Node 20.18.3')
    expect(() => assertNodeVersion('18.20.0')).toThrow('needs Node 20.19')
  })

  it('is told from one that is new enough', () => {
    for (const version of ['20.19.0', '22.0.0', '24.21.0']) assertNodeVersion(version)
  })
})
