import { defineCommand } from '../command.js'
import { DEMO_FLAGS } from '../demo/flags.js'

export const demo = defineCommand({
  name: 'demo',
  summary: 'a small story on SQLite in a temporary file: work, failures, and what to do about them',
  about: [
    'It needs no server and ends by itself in a few seconds. Every command that it shows is one that you can type; with --keep the file stays, so that you can.',
  ],
  flags: DEMO_FLAGS,
  needsBackend: false,
  examples: [['npx millrace demo', 'see what it is about']],
  // The engine and a backend: nobody else needs to load them.
  run: async (call) => (await import('../demo/run.js')).runDemo(call),
})
