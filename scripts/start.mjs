// `npm start`: installs what is missing, builds, and runs the example application. It stays up until
// Ctrl-C; `npm start -- --once` ends when the story does.
import { ensureBuilt } from './lib/build.mjs'
import { command, foreground } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { typescriptProgram } from './lib/run-typescript.mjs'

await command(() => {
  const args = process.argv.slice(2)
  const unknown = args.find((arg) => arg !== '--once')
  if (unknown !== undefined) {
    console.error(`npm start does not know "${unknown}". It takes --once, and nothing else: npm start -- --once`)
    return 1
  }
  ensurePackages()
  ensureBuilt()
  return foreground(typescriptProgram('examples/start.ts', args))
})
