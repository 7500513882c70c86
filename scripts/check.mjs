// `npm run check`: the quick loop. Format, lint, types, import direction, unused code and the fast tests.
import { availableParallelism } from 'node:os'
import { checkSteps } from './lib/check-steps.mjs'
import { command } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { endChildrenOnSignals, runSteps } from './lib/steps.mjs'
import { closingLine, failuresOf, tallyOf } from './lib/tally.mjs'
import { reportOfRun } from './lib/test-run.mjs'

await command(async () => {
  ensurePackages()
  endChildrenOnSignals()
  const outcomes = await runSteps(checkSteps(), { width: Math.min(2, availableParallelism()) })
  const report = reportOfRun('fast')
  for (const failure of failuresOf(report)) console.log(`✗ ${failure}`)
  console.log(closingLine(tallyOf(report)))
  return outcomes.every((outcome) => outcome.ok) ? 0 : 1
})
