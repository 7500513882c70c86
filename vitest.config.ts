import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { doors } from './scripts/lib/doors.mjs'
import { root } from './scripts/lib/root.mjs'

// Tests import the package by its public names, so that they exercise the doors that users open.
const alias = doors().map((door) => ({ find: new RegExp(`^${door.name}$`), replacement: join(root, door.source) }))

export default defineConfig({
  test: {
    // Any rejection that nobody handles fails the run: background work must report, never leak.
    dangerouslyIgnoreUnhandledErrors: false,
    // The default leaves a core idle, which is half of a small machine.
    maxWorkers: '100%',
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.server.test.ts', 'test/**/*.slow.test.ts'],
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
          globalSetup: ['test/support/ensure-built.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
