import { resolve } from 'node:path'
import { closestHint } from '../../core/text/did-you-mean.js'
import { safeAddress } from '../../core/text/secrets.js'
import { UsageError } from '../usage-error.js'

/** A backend address as a person typed it. */
export type Address =
  | { readonly kind: 'sqlite'; readonly name: string; readonly file: string; readonly prefix: string | undefined }
  | { readonly kind: 'postgres'; readonly name: string; readonly url: string; readonly schema: string | undefined }
  | { readonly kind: 'redis'; readonly name: string; readonly url: string; readonly prefix: string | undefined }

export interface Named {
  readonly backend: string | undefined
  readonly schema: string | undefined
  readonly prefix: string | undefined
}

const SCHEMES = ['sqlite', 'postgres', 'postgresql', 'redis', 'rediss'] as const
const KNOWN = 'sqlite:<file>, postgres://…, postgresql://…, redis://… or rediss://…'

/** Reads `--backend` (or `MILLRACE_BACKEND`) and what goes with it. `name` is safe to show. */
export function readAddress(given: Named, env: Readonly<Record<string, string | undefined>>): Address {
  const { schema, prefix } = given
  const fromEnv = env['MILLRACE_BACKEND'] === '' ? undefined : env['MILLRACE_BACKEND']
  const text = given.backend ?? fromEnv
  if (text === undefined)
    throw new UsageError(
      `Which backend? Give --backend ${KNOWN}, or set MILLRACE_BACKEND. To try Millrace without one: millrace demo`,
    )
  const where = given.backend === undefined ? 'MILLRACE_BACKEND' : '--backend'
  const name = safeAddress(text)
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  switch (scheme) {
    case 'sqlite': {
      if (schema !== undefined) throw new UsageError('--schema is for PostgreSQL; use --prefix with SQLite.')
      const file = text.slice('sqlite:'.length).replace(/^\/\/(?=\/|\.)/, '')
      if (file === '' || file.startsWith(':') || file.startsWith('//') || file.includes('\0'))
        throw new UsageError(`${where} must name a file, such as sqlite:./work.db, not "${name}".`)
      return { kind: 'sqlite', name, file: resolve(file), prefix }
    }
    case 'postgres':
    case 'postgresql':
      if (prefix !== undefined) throw new UsageError('--prefix is for SQLite and Redis; use --schema with PostgreSQL.')
      checkUrl(text, where, `${scheme}://user@host/database`)
      return { kind: 'postgres', name, url: text, schema }
    case 'redis':
    case 'rediss':
      if (schema !== undefined) throw new UsageError('--schema is for PostgreSQL; use --prefix with Redis.')
      checkUrl(text, where, `${scheme}://host:6379`)
      return { kind: 'redis', name, url: text, prefix }
    case 'nats':
      throw new UsageError(`There is no NATS backend in this version. ${where} takes ${KNOWN}.`)
    case 'file':
      throw new UsageError(`${where}: for a SQLite file write sqlite:${text.replace(/^file:(\/\/)?/i, '')}`)
    default: {
      const looksLikeFile = scheme === undefined || scheme.length === 1
      const hint = looksLikeFile ? ` For a SQLite file write sqlite:${name}` : closestHint(scheme, SCHEMES)
      throw new UsageError(`${where} takes ${KNOWN}, not "${name}".${hint}`)
    }
  }
}

function checkUrl(text: string, where: string, example: string): void {
  if (/^[a-z]+:\/\/./i.test(text) && URL.canParse(text)) return
  throw new UsageError(`${where} is not a valid address: "${safeAddress(text)}". Expected something like ${example}`)
}
