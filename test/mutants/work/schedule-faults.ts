import type { OneLineFault } from '../one-line-faults.js'

const schedules = (test: string) => ({ file: 'test/work/schedule/schedules.test.ts', test })
const mended = (test: string) => ({ file: 'test/work/schedule/mended.test.ts', test })
const cron = (test: string) => ({ file: 'test/work/schedule/cron.test.ts', test })
const zones = (test: string) => ({ file: 'test/work/schedule/time-zones.test.ts', test })

const simulation = {
  file: 'test/simulation/schedules.slow.test.ts',
  test: 'fires every occurrence once, and misses none, on native ground',
}

/** What schedules could get wrong, and `@ayepi/work` did. */
export const SCHEDULE_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'W12 who comes late fires an occurrence again that another has dealt with',
    file: 'src/backends/memory/guards.ts',
    find: 'return canFire(book, guard.name, guard.at, now) ? undefined : STALE',
    replace: 'return canFire(book, guard.name, guard.at, now) || guard.at !== undefined ? undefined : STALE',
    caughtBy: simulation,
  },
  {
    fault: 'W12 everybody who sees an occurrence due is asked for it',
    file: 'src/work/schedule/schedule-desk.ts',
    find: 'return (await store.get(key)) === this.#name',
    replace: 'return (await store.get(key)) !== undefined',
    caughtBy: schedules('W12 an instance that dies after its claim'),
  },
  {
    fault: 'W12 a schedule ends with an error',
    file: 'src/work/schedule/ticker.ts',
    find: '          wait = this.#setback()\n',
    replace: '          wait = undefined\n',
    caughtBy: schedules('W12 a `next` that throws'),
  },
  {
    fault: 'W12 a `run` that throws holds up its schedule',
    file: 'src/work/schedule/ticker.ts',
    find: "      shared.failed(error, 'queue')\n      return undefined\n    })\n",
    replace: "      shared.failed(error, 'queue')\n      throw error\n    })\n",
    caughtBy: schedules('S120 W12 a `run` that throws'),
  },
  {
    fault: 'W12 the record moves on before the work is enqueued',
    file: 'src/work/schedule/ticker.ts',
    find: '    const item = made === undefined ? undefined : this.#item(made)\n',
    replace:
      '    await this.#desk.move(schedule, at, nextAt ?? NEVER)\n    const item = made === undefined ? undefined : this.#item(made)\n',
    caughtBy: schedules('fires at its times, and what it returns runs'),
  },
  {
    fault: 'W12 work that is built for an occurrence gets an id of its own each time',
    file: 'src/work/schedule/ticker.ts',
    find: 'mintingIds(idsOf(name, at), () => run(',
    replace: 'Promise.resolve(0).then(() => run(',
    caughtBy: schedules('W12 keeps the id of what was built'),
  },
  {
    fault: 'W12 the next occurrence waits for the run of the last',
    file: 'src/work/schedule/ticker.ts',
    find: "if (made !== 'late') return made\n",
    replace: "if (made !== 'late') return made\n    await told\n",
    caughtBy: schedules('W12 the next occurrence does not wait'),
  },
  {
    fault: 'W12 a stop forgets the schedules',
    file: 'src/work/schedule/schedules.ts',
    find: 'const going = [...this.#tickers].map((ticker) => ticker.off())\n',
    replace: 'const going = [...this.#tickers].map((ticker) => ticker.off())\n    this.#tickers.clear()\n',
    caughtBy: schedules('stops with the system, and goes on'),
  },
  {
    fault: 'W12 what was missed is always left out',
    file: 'src/work/schedule/occurrence.ts',
    find: "const isOrdinary = !wasMissed || catchUp === 'all'",
    replace: 'const isOrdinary = !wasMissed',
    caughtBy: schedules('catches up with all of what was missed'),
  },
  {
    fault: 'W12 a gate that a schedule enqueues is an item like any other',
    file: 'src/work/schedule/schedule-desk.ts',
    find: 'effects.push(...settlementOf(fired).effects)',
    replace: 'effects.push(...settlementOf({ item: fired.item, queue: fired.queue } as ResolvedItem).effects)',
    caughtBy: mended('may be a gate, which waits'),
  },
  {
    fault: 'W12 a jitter longer than the interval costs occurrences',
    file: 'src/work/schedule/occurrence.ts',
    find: 'return now - at > jitterMs + GRACE_MS',
    replace: 'return now - at > GRACE_MS',
    caughtBy: mended('are all fired when the jitter is longer'),
  },
  {
    fault: 'W12 another rule moves the record on when it is due',
    file: 'src/work/schedule/ticker.ts',
    find: 'return isOthersTurn(nextAt, this.#desk.now())',
    replace: 'return isOthersTurn(nextAt, this.#desk.now()) && false',
    caughtBy: mended('are left to those who agreed on them'),
  },
  {
    fault: 'W12 an occurrence that another rule has displaced is lost',
    file: 'src/work/schedule/ticker.ts',
    find: '(await this.#desk.claim(this.#schedule.name, own))) return own\n',
    replace: '(await this.#desk.claim(this.#schedule.name, own))) return undefined\n',
    caughtBy: mended('are fired under both rules'),
  },
  {
    fault: 'W12 work that came late is tried once',
    file: 'src/work/schedule/ticker.ts',
    find: 'if (error instanceof RefusedError || this.#isOff) {',
    replace: 'if (setbacks > 0) {',
    caughtBy: mended('W12 is enqueued once the backend takes it again'),
  },
  {
    fault: 'W24 a time in the gap of spring is left out for a day',
    file: 'src/work/schedule/next-after.ts',
    find: 'return comesAnyway || change <= from ? undefined : change',
    replace: 'return undefined',
    caughtBy: zones('S118 W24 a time inside the gap'),
  },
  {
    fault: 'W24 a time that comes twice in autumn fires twice',
    file: 'src/work/schedule/next-after.ts',
    find: 'return second !== undefined && second > from && (matcher.hasWildHour || matcher.hasWildMinute) ? second : undefined',
    replace: 'return second !== undefined && second > from ? second : undefined',
    caughtBy: zones('asked in the middle of either hour'),
  },
  {
    fault: 'W24 an hour that comes twice is passed over by wildcards',
    file: 'src/work/schedule/next-after.ts',
    find: '  if (matcher.hasWildHour || matcher.hasWildMinute) {\n',
    replace: '  if (matcher.hasWildHour && !matcher.hasWildMinute) {\n',
    caughtBy: zones('wildcards fire every real interval'),
  },
  {
    fault: 'W24 a match is looked for within a year only',
    file: 'src/work/schedule/next-after.ts',
    find: 'const HORIZON_MS: Ms = 8 * 366 * DAY_MS',
    replace: 'const HORIZON_MS: Ms = 366 * DAY_MS',
    caughtBy: cron('S117 S118 is found up to eight years ahead'),
  },
  {
    fault: 'W24 an empty part of a list is everything',
    file: 'src/work/schedule/cron.ts',
    find: "if (part === '') throw bad('an empty part')",
    replace: "if (part === '') return { from: field.min, to: field.max, step: 1 }",
    caughtBy: cron('W24'),
  },
  {
    fault: 'W24 whatever JavaScript reads as a number is one',
    file: 'src/work/schedule/cron.ts',
    find: 'return /^\\d{1,4}$/.test(text) ? Number(text) : undefined',
    replace: 'return Number.isInteger(Number(text)) ? Number(text) : undefined',
    caughtBy: cron('W24'),
  },
  {
    fault: 'W24 a/b is a alone',
    file: 'src/work/schedule/cron.ts',
    find: 'to: stepText === undefined ? from : Math.max(from, field.max), step }',
    replace: 'to: from, step }',
    caughtBy: cron('S118 W24 knows Sunday as 7'),
  },
]
