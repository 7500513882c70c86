import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A data directory that initdb has made, to be copied: initdb takes a second or two, a copy a tenth of that.
 * Settings are given on the command line, so one template serves them all; it is kept in the temporary directory, per
 * version and owner, and is not removed.
 */
export function postgresTemplate(
  postgres: string,
  initdb: string,
  user: { readonly uid: number; readonly gid: number } | undefined,
): string {
  const version = execFileSync(postgres, ['--version'], { encoding: 'utf8' })
    .replaceAll(/[^\d.]+/g, ' ')
    .trim()
    .split(' ')[0]
  const owner = user?.uid ?? process.getuid?.()
  const template = join(tmpdir(), `millrace-template-postgres-${version}-${owner}`)
  if (ownerOf(template) === owner) return template

  const fresh = mkdtempSync(`${template}-`)
  if (user !== undefined) chownSync(fresh, user.uid, user.gid)
  execFileSync(
    initdb,
    ['-D', fresh, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    {
      cwd: fresh,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8' },
      ...user,
    },
  )
  try {
    // Atomic: no process ever copies half a template. Of two processes that made one, the first wins.
    renameSync(fresh, template)
    return template
  } catch {
    if (ownerOf(template) === owner) {
      rmSync(fresh, { recursive: true })
      return template
    }
    // The name is taken by another user's directory, which must not be trusted.
    return fresh
  }
}

function ownerOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.uid
}
