import { describe, expect, it } from 'vitest'
import { findProgram, howToInstall, SERVERS } from '../../scripts/lib/servers.mjs'

describe('a server that is missing on a machine that is not ours to install on', () => {
  const missing = SERVERS.filter(({ label }) => label === 'Redis' || label === 'PostgreSQL')

  it('is named, with the command that installs it', () => {
    expect(howToInstall(missing, 'linux')).toContain(
      'sudo apt-get install -y --no-install-recommends redis-server postgresql\n',
    )
    expect(howToInstall(missing, 'darwin')).toContain('brew install redis postgresql\n')
    expect(howToInstall(missing, 'linux')).toContain('Redis (redis-server), PostgreSQL (postgres)')
  })
})

describe('a program', () => {
  it('is found where it is', () => {
    expect(findProgram('sh')).toMatch(/\/sh$/)
  })

  it('is undefined where it is not', () => {
    expect(findProgram('no-such-program-of-millrace')).toBeUndefined()
  })
})
