import { defineCommand } from '../command.js'
import type { Flags } from '../input/flags.js'

export const DEMO_FLAGS = {
  keep: { kind: 'switch', about: 'keep the file, and print its path' },
} as const satisfies Flags

export const demo = defineCommand({
  name: 'demo',
  summary: 'watch work run, fail and recover, on a temporary SQLite file',
  about: [
    'It needs no server and ends in a few seconds. You can type every command that it shows; with --keep the file stays for that.',
  ],
  flags: DEMO_FLAGS,
  needsBackend: false,
  examples: [['npx millrace demo', 'see what Millrace does']],
  // Loads the engine and a backend, which no other command needs.
  run: async (call) => (await import('../demo/run.js')).runDemo(call),
})
