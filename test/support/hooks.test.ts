import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

describe('a module that test files share', () => {
  // Such a hook belongs to the file that is being read when the module is loaded. Files that share their modules (`isolate` in
  // vitest.config.ts) load it once, so all but the first would go without, and nobody would notice.
  it('sets no hook as it is loaded: it calls onTestFinished, or sets hooks in a function', () => {
    const shared = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !/\.test(-d)?\.ts$/.test(file),
    )
    const hooked = shared.filter((file) =>
      /^(before|after)(Each|All)\(/m.test(readFileSync(join(root, 'test', file), 'utf8')),
    )

    expect(shared).toContain(join('work', 'support.ts'))
    expect(hooked).toEqual([])
  })
})
