// `node scripts/setup.mjs`: everything that `npm test` needs, installed where it is missing.
import { command } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { ensureServers } from './lib/servers.mjs'

await command(() => {
  ensurePackages()
  ensureServers()
  return 0
})
