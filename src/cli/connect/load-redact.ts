import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errorText } from '../../core/text/error-text.js'
import type { Redact } from '../../core/text/redact.js'
import { UsageError } from '../usage-error.js'

/**
 * Loads the function that `--redact` (or `MILLRACE_REDACT`) names: the default export of a module, or its export `redact`. If
 * it cannot be loaded, the command fails, because it would show what should be hidden.
 */
export async function loadRedact(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Redact | undefined> {
  const file = given ?? (env['MILLRACE_REDACT'] === '' ? undefined : env['MILLRACE_REDACT'])
  if (file === undefined) return undefined
  const where = given === undefined ? 'MILLRACE_REDACT' : '--redact'
  let module: Readonly<Record<string, unknown>>
  try {
    module = (await import(pathToFileURL(resolve(file)).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new UsageError(`${where}: the module ${file} cannot be loaded, so nothing is shown. ${errorText(error)}`)
  }
  const found = module['default'] ?? module['redact']
  if (typeof found === 'function') return found as Redact
  throw new UsageError(
    `${where}: the module ${file} must export a function by default, or one named redact: (value, { kind, type, id }) => string.`,
  )
}
