import { existsSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

const IN_MEMORY = '/dev/shm'
/** Three servers at the same time, with a log of a gibibyte each, and something to spare. */
const PLENTY_BYTES = 4 * 2 ** 30

/**
 * Where servers keep their data. In memory where there is plenty: what a killed server has written is there all the same, no test
 * cuts the power, and on a busy disk the thousand files of one PostgreSQL took more than 15 s to be removed. What is measured must
 * be on a disk: `npm run bench` names another place.
 */
export function dataPlace(): string {
  const asked = process.env['MILLRACE_SERVER_DATA']
  if (asked !== undefined) return asked
  if (!existsSync(IN_MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(IN_MEMORY)
  return bavail * bsize >= PLENTY_BYTES ? IN_MEMORY : tmpdir()
}
