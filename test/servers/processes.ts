import { execFileSync } from 'node:child_process'

/** Whether a process with this id exists; one that has ended and was not yet collected does not count. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return !table().some((row) => row.pid === pid && row.state.startsWith('Z'))
}

/** The children of a process. PostgreSQL makes each of them the leader of its own group, so a group is no help. */
export function childrenOf(pid: number): number[] {
  return table()
    .filter((row) => row.parent === pid)
    .map((row) => row.pid)
}

/** Sends a signal; a process that is gone is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function table(): { pid: number; parent: number; state: string }[] {
  return execFileSync('ps', ['-A', '-o', 'pid=', '-o', 'ppid=', '-o', 'state='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length === 3)
    .map(([pid, parent, state]) => ({ pid: Number(pid), parent: Number(parent), state: state! }))
}
