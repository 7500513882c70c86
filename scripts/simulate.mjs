// `npm run simulate -- --minutes N --seed S`: random work in a simulated fleet, seed after seed. See test/simulation/main.ts.
import { command, foreground } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { typescriptProgram } from './lib/run-typescript.mjs'

await command(() => {
  ensurePackages()
  return foreground(typescriptProgram('test/simulation/main.ts', process.argv.slice(2)))
})
