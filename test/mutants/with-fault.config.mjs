import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { doors } from '../../scripts/lib/doors.mjs'
import { root } from '../../scripts/lib/root.mjs'

// The configuration under which tests run on a source with one fault in it. The fault comes in the environment, so that
// many such runs can go on at the same time; nothing is written, and the sources on disk stay as they are.
const fault = process.env['MILLRACE_FAULT'] === undefined ? undefined : JSON.parse(process.env['MILLRACE_FAULT'])

/** @param {string} id */
const isFaulty = (id) => fault !== undefined && id.split('?')[0] === join(root, fault.file)

export default defineConfig({
  root,
  resolve: {
    alias: doors().map((door) => ({ find: new RegExp(`^${door.name}$`), replacement: join(root, door.source) })),
  },
  plugins: [
    {
      name: 'one-line-fault',
      enforce: 'pre',
      /** @param {import('vitest/node').VitestPluginContext} context */
      configureVitest({ experimental_defineCacheKeyGenerator }) {
        // The file with the fault is read anew: what is kept of it is another one.
        experimental_defineCacheKeyGenerator(({ id }) => (isFaulty(id) ? false : undefined))
      },
      /**
       * @param {string} code
       * @param {string} id
       */
      transform(code, id) {
        if (!isFaulty(id)) return undefined
        if (code.split(fault.find).length !== 2) throw new Error(`${fault.file} has not exactly one "${fault.find}"`)
        return code.replace(fault.find, () => fault.replace)
      },
    },
  ],
  test: {
    include: ['test/**/*.test.ts'],
    // The cases of every other run: a fault is noticed by the test, and not by luck.
    setupFiles: ['test/support/same-properties.ts'],
    // A fault may well make a test wait forever: it has failed then, and need not be waited for longer. Without one, nothing
    // hurries.
    testTimeout: fault === undefined ? 60_000 : 10_000,
    maxWorkers: 1,
    // Nearly all of a run was reading the sources: that is done once, and a thread begins sooner than a process.
    pool: 'threads',
    experimental: { fsModuleCache: true, fsModuleCachePath: join(root, '.cache', 'modules') },
    passWithNoTests: false,
  },
})
