import { openStacks, postgresStacks, type Stacks, type StacksOptions, sqliteStacks } from 'millrace/guild/stacks'

/** Opens the store at an address: a `postgres://` URL, or the path of an SQLite file. */
export function storeAt(address: string, options: StacksOptions = {}): Promise<Stacks> {
  const backend = address.startsWith('postgres:')
    ? postgresStacks({ connectionString: address, maxConnections: 4 })
    : sqliteStacks({ file: address })
  return openStacks({ backend, ...options })
}
