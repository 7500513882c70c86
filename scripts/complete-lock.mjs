// `node scripts/complete-lock.mjs`: after a change of dependencies, adds to the lock files (ours, and that of the benches' peers) the
// builds for platforms that this machine's registry does not serve, so that `npm ci` works on all of them. A test says when it is needed.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lockFiles, missingBuilds } from './lib/lock-file.mjs'
import { root } from './lib/root.mjs'

for (const name of lockFiles) {
  const file = join(root, name)
  const lock = JSON.parse(readFileSync(file, 'utf8'))
  const missing = missingBuilds(lock.packages)
  // npm sorts its paths in this way, so that a later `npm install` leaves the order alone.
  const entries = Object.entries({ ...lock.packages, ...missing }).sort(([a], [b]) => a.localeCompare(b, 'en'))
  lock.packages = Object.fromEntries(entries)
  writeFileSync(file, `${JSON.stringify(lock, undefined, 2)}\n`)
  console.log(`${name}: ${Object.keys(missing).length} builds for other platforms added.`)
}
