import { readFileSync } from 'node:fs'

/** /proc counts processor time in hundredths of a second, on every Linux that Node runs on. */
const MS_PER_TICK = 10

/**
 * @typedef {object} Costs
 * @property {number} at milliseconds on the wall
 * @property {number} clientMs processor time of this process
 * @property {number | undefined} serverMs that of the server and its children; undefined where there is none, or no /proc
 */

/**
 * What this process and its server have spent so far.
 * @param {number | undefined} serverPid
 * @returns {Costs}
 */
export function costsSoFar(serverPid) {
  const serverMs = serverPid === undefined ? undefined : serverTime(serverPid)
  const { user, system } = process.cpuUsage()
  return { at: performance.now(), clientMs: (user + system) / 1_000, serverMs }
}

/**
 * @param {Costs} from
 * @param {Costs} to
 */
export function costsBetween(from, to) {
  const serverMs =
    from.serverMs === undefined || to.serverMs === undefined ? {} : { serverMs: to.serverMs - from.serverMs }
  return { ms: to.at - from.at, clientMs: to.clientMs - from.clientMs, ...serverMs }
}

/**
 * The processor time of a server: its own with that of children which have ended, and that of those which live (PostgreSQL has one
 * for each connection).
 * @param {number} pid
 */
function serverTime(pid) {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    let ticks = ticksOf(pid, true)
    for (const child of children === '' ? [] : children.split(' ')) ticks += ticksOf(Number(child), false)
    return ticks * MS_PER_TICK
  } catch {
    return undefined
  }
}

/**
 * @param {number} pid
 * @param {boolean} isWithEnded
 */
function ticksOf(pid, isWithEnded) {
  /** @type {string} */
  let line
  try {
    line = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    // A child that has just ended is counted with its parent the next time.
    if (!isWithEnded) return 0
    throw error
  }
  // The name, in parentheses, may hold spaces: fields are counted from behind it. utime, stime, cutime, cstime are 14 to 17.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const times = fields.slice(11, isWithEnded ? 15 : 13)
  return times.reduce((sum, ticks) => sum + Number(ticks), 0)
}
