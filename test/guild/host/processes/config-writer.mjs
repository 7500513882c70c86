// A guild that writes its part of guild.json again and again, beside another one that does the same.
// Usage: config-writer.mjs <folder> <plugin id> <times>; it begins when it is told anything.
import { createGuild } from 'millrace/guild'

const [, , root = '', id = '', times = ''] = process.argv
const g = await createGuild({ root, plugins: [{ package: `${id}-kit`, plugin: { kit: {} } }] })
console.log('ready')
await new Promise((resolve) => process.stdin.once('data', resolve))
// A lost update would be noticed here, too: what is on disk is then not what this process wrote last.
for (let n = 1; n <= Number(times); n += 1) g.writeConfig(id, { n })
await g.shutdown()
process.exit(0)
