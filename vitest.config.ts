import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const src = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url))

// Tests import the package by its public names, so that they exercise the doors that users open.
const alias = [
  { find: /^millrace$/, replacement: src('index.ts') },
  { find: /^millrace\/(.+)$/, replacement: src('$1/index.ts') },
]

export default defineConfig({
  test: {
    // Any rejection that nobody handles fails the run: background work must report, never leak.
    dangerouslyIgnoreUnhandledErrors: false,
    projects: [
      {
        resolve: { alias },
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.server.test.ts', 'test/**/*.slow.test.ts'],
        },
      },
      {
        resolve: { alias },
        test: {
          // Real servers, real processes, real files: they need time, and share two cores.
          name: 'slow',
          include: ['test/**/*.server.test.ts', 'test/**/*.slow.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
