import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'

/**
 * What the guild is to do is numbered: scenarios 1 to 43, and nineteen weaknesses of the system that it follows and that are not to
 * come back. A comment above each test has the numbers that it shows.
 */
const SUITES: readonly {
  readonly numbers: readonly [number, number]
  readonly in: readonly string[]
  /** The function that describes the suite, and where it is called: once for each kind of store. */
  readonly runs?: { readonly by: string; readonly on: Readonly<Record<keyof typeof STORES, string>> }
}[] = [
  // A host has no store.
  { numbers: [1, 7], in: ['test/guild/host/scenarios.test.ts'] },
  {
    numbers: [8, 21],
    in: ['document', 'query', 'transaction', 'capture'].map((name) => `test/guild/stacks/clauses/${name}-clauses.ts`),
    runs: { by: 'describeStacks({', on: grounds('stacks', 'memory') },
  },
  {
    numbers: [22, 27],
    in: ['test/guild/clerk/clerk-suite.ts'],
    runs: { by: 'describeClerk(on', on: grounds('clerk', 'scenarios') },
  },
  {
    numbers: [28, 43],
    in: ['test/guild/spider/scenarios.ts'],
    runs: { by: 'describeSpider(on', on: grounds('spider', 'scenarios') },
  },
]

const clause = (file: string, title: string) => [`test/guild/stacks/clauses/${file}-clauses.ts`, title] as const
const rule = (title: string) => ['test/guild/spider/rules.test.ts', title] as const
const cost = (title: string) => ['test/guild/spider/cost.test.ts', title] as const
const fault = (file: string, title: string) => [`test/mutants/guild/${file}-faults.ts`, title] as const

/** Each weakness, and the tests and planted faults that would notice it: a file, and a piece of a title in it. */
const WEAKNESSES: Readonly<Record<string, readonly (readonly [file: string, title: string])[]>> = {
  // W1
  'a shared transaction variable': [
    clause('transaction', 'unrelated transactions never share anything'),
    fault('stacks', 'all callers share the transaction that is going on'),
  ],
  // W2
  'post-commit delivery in memory only': [
    clause('durable', 'a durable watcher gets the events it missed after a restart'),
    ['test/guild/clockworks-retry/killed-anywhere.slow.test.ts', 'killed after any call to the store'],
    fault('spider', 'the retry is notified of a stuck writ in the process that wrote it, or never'),
    fault('stacks', 'progress is stored before the handler has run'),
  ],
  // W3
  'an error after the commit resets transactions, and one counter for all chains': [
    clause('capture', 'a chain that is too long stops only itself'),
    clause('capture', 'a phase-2 failure changes nothing and is reported'),
    clause('capture', 'phase-2 batches of concurrent transactions run in commit order'),
  ],
  // W4
  'check, then write': [
    rule('concurrent crawls'),
    ['test/guild/clerk/clerk-suite.ts', 'one step wins when several are tried at the same time'],
    fault('clerk', 'a writ is checked in one transaction and written in another'),
  ],
  // W5
  'stale snapshots are written back': [
    rule('what comes back after a cancel'),
    fault('spider', 'a result is recorded whichever process holds the engine now'),
  ],
  // W6
  'stuck and its reason in two steps': [
    rule('a gate that makes a writ stuck'),
    fault('spider', 'the reason is written after the commit that says stuck'),
  ],
  // W7
  'grafts and prior blocks in memory': [
    rule('grafts of two engines'),
    fault('spider', 'a graft replaces the one that waits'),
  ],
  // W8
  'a crash leaves an engine running forever': [
    rule('a process that dies in a run'),
    ['test/guild/spider/work-runner.test.ts', 'runs an engine again whose item was lost'],
    ['test/guild/spider/given-back.test.ts', 'gives it back, which is no death'],
  ],
  // W9
  'templates are interpreted twice': [rule('text of the writ'), fault('spider', 'text of the writ is compiled')],
  // W9
  'cascades of one hop': [
    ['test/guild/clerk/clerk-suite.ts', 'walk the shortest legal path'],
    fault('clerk', 'a cascade takes one step, legal or not'),
  ],
  // W9
  'an old rig ends its writ': [rule('cancelling an old rig'), fault('spider', 'any rig of a writ speaks for it')],
  // W9
  'a failed blocker holds forever': [
    rule('a gate that makes a writ stuck'),
    fault('spider', 'a removed link frees no writ'),
  ],
  // W9
  'names of tables collide': [clause('document', 'declaring a book again changes nothing, and names never collide')],
  // W9
  'sessions are needed and not required': [
    rule('without a provider of sessions'),
    fault('spider', 'sessions are needed by all'),
  ],
  // W9
  'a stale retry flag': [
    rule('a writ that a person sticks'),
    fault('spider', 'the flag is left in place when the next rig is spawned'),
  ],
  // W10
  'every crawl scans everything': [
    ['test/guild/spider/scale.slow.test.ts', 'a crawl reads only what it acts on'],
    cost('is the same'),
    fault('spider', 'a crawl reads all writs that may have a rig'),
  ],
  // W11
  'whole rigs are rewritten': [cost('rewrites'), fault('spider', 'a step rewrites every engine of its rig')],
  // W12
  'ten old writs stop all younger ones': [rule('a dozen old writs')],
  // W13
  'memory clones the store': [cost('a transaction in memory')],
  // W14
  'every crawl searches for cycles': [
    cost('does not follow'),
    fault('spider', 'a writ that is linked stays in the line'),
  ],
  // W15
  'no claims': [
    rule('concurrent crawls'),
    ['test/guild/spider/scenarios.ts', 'crawls that meet at one engine'],
    fault('spider', 'every process that found an engine ready runs it'),
    ['test/guild/spider/fleet.server.test.ts', 'no engine meets itself'],
    fault('spider', 'every process that found a writ ready gives it a rig'),
  ],
  // W16
  'a process sees its own changes only': [
    clause('durable', 'a durable watcher gets writes of other processes immediately'),
    clause('capture', 'processes with different phase-1 watchers do not write side by side'),
    fault('stacks', 'places in the outbox are given out of the order of commits'),
  ],
  // W17
  'the configuration is written without a lock': [
    ['test/guild/host/config-lock.slow.test.ts', 'no process loses what it wrote'],
    fault('clerk', 'a write of the configuration takes no notice of others'),
  ],
  // W18
  'a cap that is reached in silence': [rule('it says what it decided')],
  // W19
  'the documents disagree: what is missing, which id, whose transaction': [
    ['test/guild/host/scenarios.test.ts', 'leaves out what needs something missing'],
    ['test/guild/host/plugin-id.test.ts', 'describe('],
    clause('transaction', 'unrelated transactions never share anything'),
  ],
}

/** How a file says on what it runs a suite. */
const STORES = {
  memory: /memoryStacks\(|\(onMemory\)/,
  SQLite: /sqliteStacks\(|\(onSqlite\)/,
  PostgreSQL: /postgresStacks\(|\(onPostgres\(/,
}

describe('every scenario of the guild', () => {
  for (const { numbers, in: files, runs } of SUITES) {
    const [from, to] = numbers
    it(`${from} to ${to} is noted above a test`, () => {
      const texts = files.map(textOf).join('\n')
      const missing = range(from, to).filter((n) => !new RegExp(`^\\s*// (?:.*[ ,])?S?${n}(?:,| |$)`, 'm').test(texts))
      expect(missing).toEqual([])
    })

    if (runs !== undefined)
      it.each(Object.entries(runs.on) as [keyof typeof STORES, string][])(
        `${from} to ${to} is run on %s`,
        (ground, file) => {
          expect(textOf(file)).toContain(runs.by)
          expect(textOf(file)).toMatch(STORES[ground])
        },
      )
  }
})

describe('every weakness', () => {
  it('is one of nineteen, and each of them is here', () => {
    const numbers = textOf('test/guild/scenarios.test.ts').matchAll(/^ {2}\/\/ W(\d+)$/gm)
    expect([...new Set([...numbers].map(([, n]) => Number(n)))].sort((a, b) => a - b)).toEqual(range(1, 19))
  })

  it.each(Object.entries(WEAKNESSES))('%s has tests that are there', (_, shown) => {
    expect(shown.length).toBeGreaterThan(0)
    const lost = shown.filter(([file, title]) => !existsSync(join(root, file)) || !textOf(file).includes(title))
    expect(lost).toEqual([])
  })
})

function grounds(folder: string, memory: string): Record<keyof typeof STORES, string> {
  return {
    memory: `test/guild/${folder}/${memory}.test.ts`,
    SQLite: `test/guild/${folder}/sqlite.slow.test.ts`,
    PostgreSQL: `test/guild/${folder}/postgres.server.test.ts`,
  }
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, n) => from + n)
}
