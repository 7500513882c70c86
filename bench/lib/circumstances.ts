import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { root } from '../../scripts/lib/root.mjs'

/** The time of a run, for the head of a table. */
export const now = () => `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`

/** What is measured: the commit, and whether the sources have changed since. */
export function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
  try {
    const isChanged = git('status', '--porcelain', '--', 'src') !== ''
    return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? ' with changes' : ''}`
  } catch {
    return 'unknown'
  }
}

/** What the machine is, for the head of a table. */
export function machine(): string {
  const model = /^model name\s*:\s*(.+)$/m.exec(readText('/proc/cpuinfo'))?.[1] ?? process.arch
  const cores = readText('/proc/cpuinfo').match(/^processor\s*:/gm)?.length ?? 1
  return `${cores} × ${model}, Node ${process.versions.node}`
}

function readText(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}
