// `npm run chaos -- [BACKEND …]`: real processes on real servers, to which everything happens. See test/chaos/main.ts.
import { ensureBuilt } from './lib/build.mjs'
import { command, foreground } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { typescriptProgram } from './lib/run-typescript.mjs'
import { ensureServers } from './lib/servers.mjs'

await command(() => {
  ensurePackages()
  ensureServers()
  ensureBuilt()
  return foreground(typescriptProgram('test/chaos/main.ts', process.argv.slice(2)))
})
