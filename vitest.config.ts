import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { doors } from './scripts/lib/doors.mjs'
import { root } from './scripts/lib/root.mjs'

// Tests import the package by its public names, so that they exercise the doors that users open.
const alias = doors().map((door) => ({ find: new RegExp(`^${door.name}$`), replacement: join(root, door.source) }))

// The scenarios of the work engine, once more on each real backend (test/work/grounds); the rest of that folder is about
// the engine alone, and gains nothing from a server.
const aboutTheEngineAlone = [
  'pure',
  'options',
  'backend-time',
  'unanswered',
  'ten-thousand-waiters.slow',
  'flow-on-memory',
  'waiters-turns',
  'flow-load.slow',
  'log.slow',
  'probation',
  'ordered-events',
  'promises-per-item',
  'append-queue',
  'scenarios',
  'exports',
  'schedule/cron',
  'schedule/minute-scan.slow',
  'schedule/time-zones',
].map((name) => `test/work/${name}.test.ts`)
// Properties play the same cases in every run (test/support/same-properties.ts).
const setupFiles = ['test/support/same-properties.ts']
// What takes so long hangs. The longest need half a minute alone on two cores, and others may need those cores, too.
const SLOW_MS = 300_000
const onBackend = (name: string) => ({
  resolve: { alias },
  test: {
    name: `slow on ${name}`,
    include: ['test/work/**/*.test.ts'],
    setupFiles,
    exclude: aboutTheEngineAlone,
    // As below.
    isolate: false,
    env: { MILLRACE_TEST_GROUND: name },
    globalSetup: [`test/work/grounds/${name}-server.ts`].filter((file) => existsSync(join(root, file))),
    testTimeout: SLOW_MS,
    hookTimeout: SLOW_MS,
  },
})
const backends = ['sqlite', 'postgres', 'redis'].filter((name) =>
  existsSync(join(root, `test/work/grounds/${name}.ts`)),
)

export default defineConfig({
  test: {
    // Any rejection that nobody handles fails the run: background work must report, never leak.
    dangerouslyIgnoreUnhandledErrors: false,
    // The default leaves a core idle, which is half of a small machine; and one of the slow ones is always waiting for time to pass.
    maxWorkers: availableParallelism() + 1,
    // A source is translated once, not again in every project and every run. Runs with a planted fault share it (test/mutants).
    experimental: { fsModuleCache: true, fsModuleCachePath: join(root, '.cache', 'modules') },
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          setupFiles,
          exclude: ['test/**/*.server.test.ts', 'test/**/*.slow.test.ts'],
          // Opening the sources anew for each file took longer than the tests themselves.
          isolate: false,
          // A thousand cases of a property share two cores with the compiler and the linter.
          testTimeout: 20_000,
        },
      },
      {
        resolve: { alias },
        test: {
          // Real servers, real processes, real files: they need time, and share two cores.
          name: 'slow',
          include: ['test/**/*.server.test.ts', 'test/**/*.slow.test.ts'],
          setupFiles,
          globalSetup: ['test/support/ensure-built.ts'],
          testTimeout: SLOW_MS,
          hookTimeout: SLOW_MS,
        },
      },
      ...backends.map(onBackend),
    ],
  },
})
