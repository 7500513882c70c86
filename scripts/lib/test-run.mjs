import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'

/** @param {'fast' | 'slow'} project */
const reportFile = (project) => join(root, '.cache', 'results', `${project}.json`)

/**
 * The step that runs one vitest project and leaves a report to count.
 * @param {'fast' | 'slow'} project
 * @returns {import('./steps.mjs').Step}
 */
export function testStep(project) {
  // An old report must not stand in for a run that died before it wrote one.
  rmSync(reportFile(project), { force: true })
  return {
    name: `${project} tests`,
    command: 'vitest',
    args: [
      'run',
      '--project',
      // `slow on sqlite` and its like belong to the slow ones.
      `${project}*`,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${reportFile(project)}`,
    ],
    isShown: project === 'slow',
  }
}

/**
 * What the last run of a project reported, or `undefined` if it died before it wrote a report.
 * @param {'fast' | 'slow'} project
 * @returns {import('./tally.mjs').Report | undefined}
 */
export function reportOfRun(project) {
  let text
  try {
    text = readFileSync(reportFile(project), 'utf8')
  } catch {
    return undefined
  }
  return JSON.parse(text)
}
