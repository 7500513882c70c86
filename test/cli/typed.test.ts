import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { typedCommand } from '../../src/cli/typed.js'

const words = [
  'charge/o-3',
  'two words',
  "it's",
  '$(touch /tmp/owned)',
  '`id`',
  'a"b\\c',
  'line\nline \u001b[31m',
  '\u202eabc',
  'größe ✓',
  '~',
  '*',
  '',
  'x'.repeat(200),
]

describe('a command to copy', () => {
  it('is read back by a shell as it was meant, whatever is in an id', () => {
    const line = typedCommand(words, { env: {}, flags: {} })
    // One shell for all of them: the words, each ended by a byte that none of them has.
    const { stdout } = spawnSync('bash', ['-c', `millrace() { printf '%s\\0' "$@"; }; ${line}`], { encoding: 'utf8' })
    expect(stdout.split('\0').slice(0, -1)).toEqual(words)
  })

  it('has nothing in it that changes a terminal', () => {
    expect(typedCommand(words, { env: {}, flags: {} })).not.toMatch(/[\p{Cc}\u202e]/u)
  })

  it('is for the same backend, called the same way', () => {
    const flags = { backend: 'postgres://ada:geheim@h/d', schema: 'shop', json: false }
    expect(typedCommand(['redrive', 'a'], { env: { npm_command: 'exec' }, flags })).toBe(
      "npx millrace redrive a --backend 'postgres://ada:***@h/d' --schema shop",
    )
    expect(typedCommand(['workers'], { env: { MILLRACE_BACKEND: 'sqlite:./a.db' }, flags: {} })).toBe(
      'millrace workers',
    )
  })
})
