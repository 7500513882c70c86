import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { WEAKER_OVER_PLAIN_PORTS } from '../../src/testing/conformance/describe-backend.js'
import { inTwoSteps, waived, without } from './plain/under-test.js'
import { SHARED, WAIVERS } from './waivers.js'

/** A conformance suite as it is written at the top level of a test file. */
const SUITE = /^describe(?:Backend|Ledger|Queue|Store|PubSub|Inlet)\(\{(?: .*\}\)$|\n[\s\S]*?^\}\))/gm

/** What a suite is let off by one of its options: capabilities, clauses, and the names of shared lists. */
function letOff(suite: string, option: 'without' | 'waived'): readonly string[] {
  const found = new RegExp(`\\n {2}(?:plain: \\{ )?${option}(?:: ([\\s\\S]*?))?(?: \\})?,\\n(?= {2}\\w|\\})`).exec(
    suite,
  )
  if (found === null) {
    // However it is laid out, a suite that speaks of waivers must be understood here.
    return new RegExp(`\\b${option}:`).test(suite) ? [`${option} could not be read`] : []
  }
  const written = found[1] ?? option
  if (/^\w+$/.test(written)) return [`...${written}`]
  const names = written.startsWith('{') ? /\.\.\.\w+|(?<=')[^'\n]+(?=':)/g : /\.\.\.\w+|(?<=')[\w ]+(?=')/g
  return written.match(names) ?? [`${option} could not be read`]
}

function suitesOf(file: string): readonly (readonly [string, readonly string[]])[] {
  const text = readFileSync(join(root, 'test', file), 'utf8')
  return (text.match(SUITE) ?? []).flatMap((suite) => {
    const name = /name: '([^']*)'/.exec(suite)?.[1] ?? '?'
    const names = [...letOff(suite, 'without'), ...letOff(suite, 'waived')]
    return names.length === 0 ? [] : [[`${file.split(sep).join('/')}: ${name}`, names] as const]
  })
}

describe('what a backend of ours is let off', () => {
  it('is in the list of waivers: a new one is a decision, not a way to make a test pass', () => {
    const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    const found = files.filter((file) => file.endsWith('.test.ts')).flatMap(suitesOf)

    expect(Object.fromEntries(found)).toEqual(WAIVERS)
  })

  it('is the same wherever suites share it', () => {
    const shared = {
      WEAKER_OVER_PLAIN_PORTS,
      without,
      waived: Object.keys(waived),
      inTwoSteps: Object.keys(inTwoSteps),
    }
    expect(shared).toEqual(SHARED)
    const spread = Object.values(WAIVERS).flatMap((names) => names.filter((name) => name.startsWith('...')))
    expect(spread.filter((name) => !(name.slice(3) in SHARED))).toEqual([])
  })
})
