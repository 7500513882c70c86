import type { OneLineFault } from '../one-line-faults.js'

const schedules = (test: string) => ({ file: 'test/work/schedule/schedules.test.ts', test })
const regressions = (test: string) => ({ file: 'test/work/schedule/regressions.test.ts', test })
const cron = (test: string) => ({ file: 'test/work/schedule/cron.test.ts', test })
const zones = (test: string) => ({ file: 'test/work/schedule/time-zones.test.ts', test })

const simulation = {
  file: 'test/simulation/schedules.slow.test.ts',
  test: 'fires every occurrence once, and misses none, on native ground',
}

/** What schedules could get wrong, and `@ayepi/work` did. */
export const SCHEDULE_FAULTS: readonly OneLineFault[] = [
  {
    // W12
    fault: 'a late process fires an occurrence again that another has dealt with',
    file: 'src/backends/shared/check-guard.ts',
    find: 'return nextAt === guard.at ? undefined : STALE',
    replace: 'return nextAt === guard.at || guard.at !== undefined ? undefined : STALE',
    caughtBy: simulation,
  },
  {
    // W12
    fault: 'every process that sees an occurrence due is asked for it',
    file: 'src/work/schedule/schedule-store.ts',
    find: 'return (await store.get(key)) === this.#name',
    replace: 'return (await store.get(key)) !== undefined',
    caughtBy: schedules('an instance that dies after its claim'),
  },
  {
    // W12
    fault: 'a schedule ends with an error',
    file: 'src/work/schedule/ticker.ts',
    find: '          wait = this.#setback()\n',
    replace: '          wait = undefined\n',
    caughtBy: schedules('a `next` that throws'),
  },
  {
    // W12
    fault: 'a `run` that throws holds up its schedule',
    file: 'src/work/schedule/ticker.ts',
    find: "      context.failed(error, 'queue')\n      return undefined\n    })\n",
    replace: "      context.failed(error, 'queue')\n      throw error\n    })\n",
    caughtBy: schedules('a `run` that throws'),
  },
  {
    // W12
    fault: 'the record moves on before the work is enqueued',
    file: 'src/work/schedule/ticker.ts',
    find: '    const item = made === undefined ? undefined : this.#item(made)\n',
    replace:
      '    await this.#context.move(schedule, at, nextAt ?? NEVER)\n    const item = made === undefined ? undefined : this.#item(made)\n',
    caughtBy: schedules('fires at its times, and what it returns runs'),
  },
  {
    // W12
    fault: 'work that is built for an occurrence gets a new id each time',
    file: 'src/work/schedule/ticker.ts',
    find: 'mintingIds(idsOf(name, at), () => run(',
    replace: 'Promise.resolve(0).then(() => run(',
    caughtBy: schedules('keeps the id of what was built'),
  },
  {
    // W12
    fault: 'the next occurrence waits for the run of the last',
    file: 'src/work/schedule/ticker.ts',
    find: "if (made !== 'late') return made\n",
    replace: "if (made !== 'late') return made\n    await returned\n",
    caughtBy: schedules('the next occurrence does not wait'),
  },
  {
    // W12
    fault: 'a stop forgets the schedules',
    file: 'src/work/schedule/schedules.ts',
    find: 'const going = [...this.#tickers].map((ticker) => ticker.off())\n',
    replace: 'const going = [...this.#tickers].map((ticker) => ticker.off())\n    this.#tickers.clear()\n',
    caughtBy: schedules('stops with the system, and goes on'),
  },
  {
    // W12
    fault: 'what was missed is always left out',
    file: 'src/work/schedule/occurrence.ts',
    find: "const isOrdinary = !wasMissed || catchUp === 'all'",
    replace: 'const isOrdinary = !wasMissed',
    caughtBy: schedules('catches up with all of what was missed'),
  },
  {
    // W12
    fault: 'a gate that a schedule enqueues is an item like any other',
    file: 'src/work/schedule/schedule-store.ts',
    find: 'effects.push(...settlementOf(fired).effects)',
    replace: 'effects.push(...settlementOf({ item: fired.item, queue: fired.queue } as ResolvedItem).effects)',
    caughtBy: regressions('may be a gate, which waits'),
  },
  {
    // W12
    fault: 'a jitter longer than the interval costs occurrences',
    file: 'src/work/schedule/occurrence.ts',
    find: 'return now - at > jitterMs + GRACE_MS',
    replace: 'return now - at > GRACE_MS',
    caughtBy: regressions('are all fired when the jitter is longer'),
  },
  {
    // W12
    fault: 'another rule moves the record on when it is due',
    file: 'src/work/schedule/ticker.ts',
    find: 'return isOthersTurn(nextAt, this.#store.now())',
    replace: 'return isOthersTurn(nextAt, this.#store.now()) && false',
    caughtBy: regressions('are left to the processes that stored them'),
  },
  {
    // W12
    fault: 'an occurrence that another rule has displaced is lost',
    file: 'src/work/schedule/ticker.ts',
    find: '(await this.#store.claim(this.#schedule.name, own))) return own\n',
    replace: '(await this.#store.claim(this.#schedule.name, own))) return undefined\n',
    caughtBy: regressions('are fired under both rules'),
  },
  {
    // W12
    fault: 'work that came late is tried once',
    file: 'src/work/schedule/ticker.ts',
    find: 'if (error instanceof ItemRefusedError || this.#isOff) {',
    replace: 'if (setbacks > 0) {',
    caughtBy: regressions('is enqueued once the backend takes it again'),
  },
  {
    // W24
    fault: 'a time in the gap of spring is left out for a day',
    file: 'src/work/schedule/next-after.ts',
    find: 'return comesAnyway || change <= from ? undefined : change',
    replace: 'return undefined',
    caughtBy: zones('a time inside the gap'),
  },
  {
    // W24
    fault: 'a time that comes twice in autumn fires twice',
    file: 'src/work/schedule/next-after.ts',
    find: 'return second !== undefined && second > from && (matcher.hasWildHour || matcher.hasWildMinute) ? second : undefined',
    replace: 'return second !== undefined && second > from ? second : undefined',
    caughtBy: zones('asked in the middle of either hour'),
  },
  {
    // W24
    fault: 'an hour that comes twice is passed over by wildcards',
    file: 'src/work/schedule/next-after.ts',
    find: '  if (matcher.hasWildHour || matcher.hasWildMinute) {\n',
    replace: '  if (matcher.hasWildHour && !matcher.hasWildMinute) {\n',
    caughtBy: zones('wildcards fire every real interval'),
  },
  {
    // W24
    fault: 'a match is searched for within a year only',
    file: 'src/work/schedule/next-after.ts',
    find: 'const HORIZON_MS: Ms = 8 * 366 * DAY_MS',
    replace: 'const HORIZON_MS: Ms = 366 * DAY_MS',
    caughtBy: cron('is found up to eight years ahead'),
  },
  {
    // W24
    fault: 'an empty part of a list is everything',
    file: 'src/work/schedule/cron.ts',
    find: "if (part === '') throw bad('an empty part')",
    replace: "if (part === '') return { from: field.min, to: field.max, step: 1 }",
    caughtBy: cron('refuses'),
  },
  {
    // W24
    fault: 'whatever JavaScript reads as a number is one',
    file: 'src/work/schedule/cron.ts',
    find: 'return /^\\d{1,4}$/.test(text) ? Number(text) : undefined',
    replace: 'return Number.isInteger(Number(text)) ? Number(text) : undefined',
    caughtBy: cron('refuses'),
  },
  {
    // W24
    fault: 'a/b is only a',
    file: 'src/work/schedule/cron.ts',
    find: 'to: stepText === undefined ? from : Math.max(from, field.max), step }',
    replace: 'to: from, step }',
    caughtBy: cron('knows Sunday as 7'),
  },
]
