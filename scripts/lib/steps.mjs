import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * One thing to run and to report in one line.
 * @typedef {object} Step
 * @property {string} name
 * @property {string} command a program of node_modules/.bin by its bare name, or a path
 * @property {readonly string[]} args
 * @property {NodeJS.ProcessEnv} [env] this one's environment, unless it is ours
 * @property {boolean} [isShown] pass its output through as it comes, for what takes minutes; otherwise it is kept and
 *   printed only when the step fails
 */

/**
 * @typedef {object} Outcome
 * @property {string} name
 * @property {boolean} ok
 * @property {number} ms
 */

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()
let isStopping = false

/**
 * Ends the children when this process is told to end, so that an interrupted run leaves nothing behind. Called by the
 * commands, not on import.
 */
export function endChildrenOnSignals() {
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
    process.once(signal, () => {
      isStopping = true
      for (const child of running) child.kill(signal)
      process.exitCode = signal === 'SIGINT' ? 130 : 143
    })
  }
}

/**
 * Runs the steps in order, `width` at a time, and prints each one's line as it ends.
 * @param {readonly Step[]} steps
 * @param {{ width?: number }} [options]
 * @returns {Promise<Outcome[]>} in the order of the steps
 */
export async function runSteps(steps, { width = 1 } = {}) {
  /** @type {Outcome[]} */
  const outcomes = []
  let next = 0
  const lane = async () => {
    while (next < steps.length && !isStopping) {
      const index = next++
      const step = /** @type {Step} */ (steps[index])
      outcomes[index] = await runStep(step)
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
  return outcomes
}

/**
 * @param {Step} step
 * @returns {Promise<Outcome>}
 */
export async function runStep(step) {
  const startedAt = performance.now()
  if (step.isShown) console.log(`… ${step.name}`)
  const { code, output } = await run(step)
  const outcome = { name: step.name, ok: code === 0, ms: performance.now() - startedAt }
  printOutcome(outcome)
  if (!outcome.ok && !step.isShown) console.log(indent(output.trim() || `(exit code ${code}, no output)`))
  return outcome
}

/** @param {Outcome} outcome */
export function printOutcome({ name, ok, ms }) {
  console.log(`${ok ? '✓' : '✗'} ${name.padEnd(28)} ${seconds(ms).padStart(8)}`)
}

/** @param {number} ms */
export const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`

/** @param {string} text */
const indent = (text) => text.replace(/^(?=.)/gm, '    ')

/**
 * @param {Step} step
 * @returns {Promise<{ code: number, output: string }>}
 */
function run({ command, args, env = process.env, isShown = false }) {
  const program = /[\\/]/.test(command) ? command : join(root, 'node_modules', '.bin', command)
  return new Promise((resolve) => {
    /** @type {Buffer[]} */
    const chunks = []
    const child = spawn(program, args, {
      cwd: root,
      env,
      // A question would find no answer here: a step that asks one must fail immediately, not wait.
      stdio: isShown ? ['ignore', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe'],
    })
    running.add(child)
    child.stdout?.on('data', (chunk) => chunks.push(chunk))
    child.stderr?.on('data', (chunk) => chunks.push(chunk))
    /** @type {(code: number, note: string) => void} */
    const end = (code, note) => {
      running.delete(child)
      resolve({ code, output: Buffer.concat(chunks).toString('utf8') + note })
    }
    child.once('error', (error) => end(1, `\ncould not start ${program}: ${error.message}`))
    child.once('close', (code, signal) => end(code ?? 1, signal === null ? '' : `\nended by ${signal}`))
  })
}
