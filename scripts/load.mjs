// `npm run load -- BACKEND SCENARIO`: a worker under more load than it can take, and a table of how it fared. See test/load/main.ts.
import { ensureBuilt } from './lib/build.mjs'
import { command, foreground } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { typescriptProgram } from './lib/run-typescript.mjs'
import { ensureServers } from './lib/servers.mjs'

await command(() => {
  ensurePackages()
  ensureServers()
  ensureBuilt()
  return foreground(typescriptProgram('test/load/main.ts', process.argv.slice(2)))
})
