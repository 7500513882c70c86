// A process that starts one server of each kind, says where they are, and then hangs until it is killed.
import { startNats, startPostgres, startRedis } from './index.js'

const servers = await Promise.all([startRedis(), startPostgres({ settings: { fsync: 'off' } }), startNats()])
// Frozen children are the hard case: a PostgreSQL backend that is stopped never notices that its parent is gone.
for (const server of servers) server.pause()
process.stdout.write(`${JSON.stringify(servers.map(({ pid, dir }) => ({ pid, dir })))}\n`)
setInterval(() => {}, 1_000)
