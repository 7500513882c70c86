// `npm test`: everything, from a fresh clone on a fresh machine.
import { availableParallelism } from 'node:os'
import { checkSteps } from './lib/check-steps.mjs'
import { command } from './lib/command.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { ensureServers } from './lib/servers.mjs'
import { endChildrenOnSignals, printOutcome, runStep, runSteps, seconds } from './lib/steps.mjs'
import { closingLine, failuresOf, tallyOf, total } from './lib/tally.mjs'
import { reportOfRun, testStep } from './lib/test-run.mjs'

await command(async () => {
  const startedAt = performance.now()
  ensurePackages()
  ensureServers()
  const setUp = { name: 'set-up', ok: true, ms: performance.now() - startedAt }
  printOutcome(setUp)
  endChildrenOnSignals()

  const outcomes = [setUp, ...(await runSteps(checkSteps(), { width: Math.min(2, availableParallelism()) }))]
  const reports = [reportOfRun('fast')]
  const built = await runStep({ name: 'build', command: process.execPath, args: ['scripts/build.mjs'] })
  outcomes.push(built)
  // The slow tests run what was built: real processes on dist, and the packed tarball.
  if (built.ok) {
    outcomes.push(await runStep(testStep('slow')))
    reports.push(reportOfRun('slow'))
  } else {
    console.log('- slow tests were not run, since the build failed')
  }

  console.log('\nSummary')
  for (const outcome of outcomes) printOutcome(outcome)
  for (const failure of reports.flatMap(failuresOf)) console.log(`✗ ${failure}`)
  const failed = outcomes.filter((outcome) => !outcome.ok).map((outcome) => outcome.name)
  console.log(failed.length === 0 ? 'Everything passed.' : `Failed: ${failed.join(', ')}.`)
  console.log(`Took ${seconds(performance.now() - startedAt)}.`)
  const counted = total(reports.map(tallyOf))
  console.log(closingLine(counted))
  return failed.length === 0 && counted.failed === 0 && counted.passed > 0 ? 0 : 1
})
