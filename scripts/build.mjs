// `npm run build`: compiles src into dist.
import { build } from './lib/build.mjs'
import { command } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'

await command(() => {
  ensurePackages()
  build()
  return 0
})
