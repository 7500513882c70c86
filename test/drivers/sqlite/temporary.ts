import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** In memory where the system has such a place: no test here cuts the power, and a busy disk takes 60 ms for each file. */
const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** A file of this name in a separate directory, which is removed after the test. */
export function temporaryFile(name = 'data.db'): string {
  const dir = mkdtempSync(join(base, 'millrace-sqlite-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return join(dir, name)
}
