import { spawn } from 'node:child_process'
import { BuildError } from './build.mjs'
import { SetupError } from './packages.mjs'
import { root } from './root.mjs'

/**
 * The body of a command: what people can fix is printed as a sentence, what only we can fix with its stack; both exit 1.
 * @param {() => Promise<number> | number} body returns the exit code
 */
export async function command(body) {
  try {
    process.exitCode = (await body()) || process.exitCode || 0
  } catch (error) {
    const isPlain = error instanceof SetupError || error instanceof BuildError
    console.error(isPlain ? error.message : error)
    process.exitCode = 1
  }
}

/**
 * Runs a program in the foreground, with this process's input and output, and gives its exit code. Signals from the
 * terminal reach it by themselves; a SIGTERM sent to this process is passed on.
 * @param {{ command: string, args: string[], env: NodeJS.ProcessEnv }} program
 * @returns {Promise<number>}
 */
export function foreground({ command, args, env }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
    // The program decides what an interrupt means (to drain, say); this process only waits for it.
    process.on('SIGINT', () => {})
    process.on('SIGTERM', () => child.kill('SIGTERM'))
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 143)))
  })
}
