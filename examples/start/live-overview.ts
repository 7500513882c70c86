import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const MILLRACE = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Whether there is somebody to look, and to press a key. */
export const canShowOverview = process.stdin.isTTY === true && process.stdout.isTTY === true

/**
 * `npx millrace overview --watch`, on the same file: the command line is a separate process that loads no handlers, here as anywhere.
 * Resolves when the person ends it (true), or when it could not be shown (false).
 */
export function liveOverview(file: string, signal: AbortSignal): Promise<boolean> {
  const args = [MILLRACE, 'overview', '--watch', '--backend', `sqlite:${file}`]
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  signal.addEventListener('abort', () => child.kill('SIGINT'), { once: true })
  return new Promise((resolve) => {
    child.once('error', () => resolve(false))
    child.once('close', (code) => resolve(code === 0 || signal.aborted))
  })
}
