import { type ChildProcess, spawn } from 'node:child_process'
import { typescriptProgram } from '../../../../scripts/lib/run-typescript.mjs'

/** Starts one of the programs beside this file. */
export function start(name: string, ...args: readonly string[]): ChildProcess {
  const { command, args: all, env } = typescriptProgram(`test/guild/stacks/processes/${name}.ts`, args)
  return spawn(command, all, { env, stdio: ['ignore', 'pipe', 'pipe'] })
}

/** What it printed, once it has ended well. */
export async function output(child: ChildProcess): Promise<string> {
  let [text, errors] = ['', '']
  child.stdout?.on('data', (chunk) => {
    text += chunk
  })
  child.stderr?.on('data', (chunk) => {
    errors += chunk
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  if (code !== 0) throw new Error(`the process ended with ${code}: ${errors}`)
  return text
}

/** Resolves when it has said that it is ready. */
export function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let errors = ''
    child.stderr?.on('data', (chunk) => {
      errors += chunk
    })
    child.stdout?.once('data', () => resolve())
    child.on('close', () => reject(new Error(`the process ended before it was ready: ${errors}`)))
  })
}
