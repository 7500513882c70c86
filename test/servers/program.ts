import { fileURLToPath } from 'node:url'
import { ensureServers, findProgram } from '../../scripts/lib/servers.mjs'

/**
 * The path of a server's program. Where it is missing and this is Debian and root, it is installed, without its service;
 * elsewhere the error says what to install.
 */
export function programPath(name: string): string {
  const found = findProgram(name)
  if (found !== undefined) return found
  ensureServers()
  const installed = findProgram(name)
  if (installed === undefined) throw new Error(`${name} is not among the programs of the servers that are installed.`)
  return installed
}

/** The path of a shell script that lies beside this file. */
export function script(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}
