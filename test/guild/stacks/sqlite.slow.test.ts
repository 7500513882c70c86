import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStacks } from 'millrace/guild/stacks'
import { describeStacks } from './clauses/describe-stacks.js'

describeStacks({
  name: 'sqlite',
  open: () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-stacks-'))
    return {
      backend: () => sqliteStacks({ file: join(folder, 'stacks.sqlite') }),
      close: () => rmSync(folder, { recursive: true }),
    }
  },
})
