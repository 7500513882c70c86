import { pluginIdOf } from 'millrace/guild'
import { describe, expect, it } from 'vitest'
import { packageNamed } from '../../../src/guild/host/plugin-id.js'

describe('the id of a plugin', () => {
  it.each([
    ['@millrace/stacks-apparatus', 'stacks'],
    ['@acme/cache-apparatus', 'acme/cache'],
    ['my-relay-kit', 'my-relay'],
    ['my-kit-tools', 'my-kit-tools'],
    ['my-thing-plugin', 'my-thing'],
    ['my-plugin', 'my'],
    ['my-kit-plugin', 'my-kit'],
    ['kit', 'kit'],
    ['@acme/-kit', 'acme/-kit'],
    ['millrace/guild/stacks', 'stacks'],
    ['millrace/guild/clockworks-retry', 'clockworks-retry'],
  ])('of %s is %s', (packageName, id) => {
    expect(pluginIdOf(packageName)).toBe(id)
  })

  it('follows the list of official scopes', () => {
    expect(pluginIdOf('@acme/cache-kit', ['@acme'])).toBe('cache')
    expect(pluginIdOf('@millrace/cache-kit', ['@acme'])).toBe('millrace/cache')
  })
})

describe('a name in the configuration', () => {
  it('may be a package, an id of a declared one, or an id of a built-in one', () => {
    expect(packageNamed('left-kit', ['left-kit'])).toEqual({ packageName: 'left-kit' })
    expect(packageNamed('acme/left', ['@acme/left-kit'])).toEqual({ packageName: '@acme/left-kit' })
    expect(packageNamed('clerk', [])).toEqual({ packageName: 'millrace/guild/clerk' })
    expect(packageNamed('unknown', ['other'])).toEqual({ packageName: 'unknown' })
  })

  it('prefers the official scope, then what is built in, and says so', () => {
    expect(packageNamed('left', ['left-kit', '@millrace/left-apparatus'])).toEqual({
      packageName: '@millrace/left-apparatus',
      warning: expect.stringContaining('"@millrace/left-apparatus" or "left-kit"'),
    })
    expect(packageNamed('stacks', ['stacks-plugin'])).toMatchObject({
      packageName: 'millrace/guild/stacks',
      warning: expect.stringContaining('"stacks-plugin"'),
    })
  })
})
