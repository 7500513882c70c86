// A process that fails an engine and is killed at one step between the stuck commit and the end of the retry.
// Usage: victim.mjs <address> <step> where an address is a file of SQLite or postgres://…#<schema>
import { postgresStacks, sqliteStacks } from 'millrace/guild/stacks'
import { failTwice } from './failing-guild.mjs'

const [, , address = '', at = ''] = process.argv
const [url = '', schema = ''] = address.split('#')
const backend = address.startsWith('postgres')
  ? postgresStacks({ connectionString: url, schema, maxConnections: 4 })
  : sqliteStacks({ file: address })

await failTwice(backend, (step) => {
  if (step === at) process.kill(process.pid, 'SIGKILL')
})
