import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../../../scripts/lib/root.mjs'
import { brokerTable } from './standings.js'

it('the table of brokers in the guide says what their suites say', () => {
  expect(readFileSync(join(root, 'docs/guide/brokers.md'), 'utf8')).toContain(brokerTable())
})
