import type { OneLineFault } from '../one-line-faults.js'

const rules = (test: string) => ({ file: 'test/guild/spider/rules.test.ts', test })
const scenario = (test: string) => ({ file: 'test/guild/spider/scenarios.test.ts', test })
const givenBack = (test: string) => ({ file: 'test/guild/spider/given-back.test.ts', test })
const cost = (test: string) => ({ file: 'test/guild/spider/cost.test.ts', test })

/** Faults of the model that Spider and Clockworks-Retry follow, and others as easily made. */
export const SPIDER_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'a result is recorded whoever holds the engine now',
    file: 'src/guild/spider/settle.ts',
    find: "|| !sheet.isActive) return null\n    if (engine.status !== 'running' || engine.claim?.token !== token) return null",
    replace: ') return null',
    caughtBy: rules('W5'),
  },
  {
    fault: 'text of the writ is compiled once more',
    file: 'src/guild/spider/expression.ts',
    find: "if (value !== undefined) resolved.push([name, { kind: 'value', value }])",
    replace: 'if (value !== undefined) resolved.push([name, compileGiven(value)])',
    caughtBy: rules('W9: text of the writ'),
  },
  {
    fault: 'any rig of a writ speaks for it',
    file: 'src/guild/spider/cascade.ts',
    find: 'if ((await newestRig(floor, rig.writId))?.id !== rig.id) return',
    replace: '',
    caughtBy: rules('W9: cancelling an old rig'),
  },
  {
    fault: 'the flag is left in place when the next rig is spawned',
    file: 'src/guild/spider/spawn.ts',
    find: "if (retryable !== undefined) await floor.clerk.setWritStatus(writ.id, 'spider', rest)",
    replace: '',
    caughtBy: rules('W9: a writ that a person sticks'),
  },
  {
    fault: 'a graft replaces the one that waits',
    file: 'src/guild/spider/settle.ts',
    find: 'pendingGrafts: [...(sheet.rig.pendingGrafts ?? []), {',
    replace: 'pendingGrafts: [{',
    caughtBy: rules('W7'),
  },
  {
    fault: 'a removed link frees nobody',
    file: 'src/guild/spider/line.ts',
    find: 'if (held && !holds) await unlinked(floor, before)',
    replace: '',
    caughtBy: rules('W6'),
  },
  {
    fault: 'whatever resembles true is a flag',
    file: 'src/guild/clockworks-retry/observer.ts',
    find: 'statusOf(writ)?.retryable === true',
    replace: 'Boolean(statusOf(writ)?.retryable)',
    caughtBy: scenario('40:'),
  },
  {
    fault: 'the reason is written after the commit that says stuck',
    file: 'src/guild/spider/end-rig.ts',
    find: "await floor.clerk.setWritStatus(writId, 'spider', status)",
    replace:
      "queueMicrotask(() => void floor.stacks.detached(() => floor.clerk.setWritStatus(writId, 'spider', status)).catch(() => undefined))",
    caughtBy: scenario('39:'),
  },
  {
    fault: 'the retry hears of a stuck writ in the process that wrote it, or never',
    file: 'src/guild/clockworks-retry/apparatus.ts',
    find: "{ durable: 'clockworks-retry' }",
    replace: '{ failOnError: false }',
    caughtBy: { file: 'test/guild/clockworks-retry/killed-anywhere.slow.test.ts', test: 'by a process beside it' },
  },
  {
    fault: 'a crawl reads all writs that may have a rig',
    file: 'src/guild/spider/spawn.ts',
    find: 'limit: floor.width } as const',
    replace: '} as const',
    caughtBy: cost('W10'),
  },
  {
    fault: 'a step rewrites every engine of its rig',
    file: 'src/guild/spider/sheet.ts',
    find: 'for (const id of this.#dirty) await',
    replace: 'for (const id of this.#engines.keys()) await',
    caughtBy: cost('W11'),
  },
  {
    fault: 'a writ that is linked stays in the line, and every crawl asks its links anew',
    file: 'src/guild/spider/line.ts',
    find: "await waitFor(floor, row, 'held', [targetId])",
    replace: 'void row',
    caughtBy: cost('W14'),
  },
  {
    fault: 'whoever found a writ ready gives it a rig',
    file: 'src/guild/spider/spawn.ts',
    find: "if (row?.state !== 'ready') return null",
    replace: 'if (row === null) return null',
    caughtBy: rules('W4, W15'),
  },
  {
    fault: 'whoever found an engine ready runs it',
    file: 'src/guild/spider/crawl.ts',
    find: '!sheet.isActive || !sheet.isReady(engine))',
    replace: '!sheet.isActive)',
    caughtBy: scenario('W15: crawls that meet at one engine'),
  },
  {
    fault: 'a holder that gave its claim back counts as dead',
    file: 'src/guild/spider/claim.ts',
    find: 'claim === undefined || claim.isGivenBack === true ?',
    replace: 'claim === undefined ?',
    caughtBy: givenBack('a guild that shuts down while a crawl runs'),
  },
  {
    fault: 'a holder that gave its claim back too late counts as dead',
    file: 'src/guild/spider/claim.ts',
    find: 'else if (lapsed === token) sheet.set(',
    replace: 'else if (lapsed === ``) sheet.set(',
    caughtBy: givenBack('it says so after another took it'),
  },
  {
    fault: 'sessions are needed by all',
    file: 'src/guild/spider/apparatus.ts',
    find: "requires: ['stacks', 'clerk', 'fabricator'],",
    replace: "requires: ['stacks', 'clerk', 'fabricator', 'animator'],",
    caughtBy: rules('W9: without a provider of sessions'),
  },
  {
    fault: 'an item that was lost and made anew is taken for an old one',
    file: 'src/guild/spider/autonomy.ts',
    find: " && (claim.handover ?? '') === handover",
    replace: '',
    caughtBy: { file: 'test/guild/spider/autonomy.test.ts', test: 'lost with its work system' },
  },
]
