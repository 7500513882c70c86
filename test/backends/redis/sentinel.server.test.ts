import { expect, it } from 'vitest'
import { redisBackend } from '../../../src/backends/redis/index.js'
import { createWork, defineWork } from '../../../src/index.js'
import { startRedisBehindSentinel } from '../../servers/index.js'

const double = defineWork('double', (n: number, ctx) => ctx.result(n * 2))

// Servers die and others take over, so time is real.
it('behind Sentinel, work goes on with the replica when the master is dead', async () => {
  const servers = await startRedisBehindSentinel()
  const { name, sentinel, master } = servers
  const backend = redisBackend({
    options: { sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name },
    commandTimeoutMs: 2_000,
    onError: () => undefined,
  })
  const w = createWork({ backend, work: [double], pollInterval: 200, onError: () => undefined })
  try {
    expect(await w.enqueue(double(1)).result()).toBe(2)
    await master.kill()
    // What is not accepted while there is no master is refused, and the caller tries again.
    let accepted: string | undefined
    for (let tries = 0; accepted === undefined && tries < 200; tries += 1) {
      accepted = await w
        .enqueue(double(21))
        .accepted()
        .then(
          ({ id }) => id,
          () => undefined,
        )
      if (accepted === undefined) await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(accepted).toBeDefined()
    expect(await w.enqueue(double(4)).result({ timeout: 20_000 })).toBe(8)
  } finally {
    await w.stop()
    await backend.close()
    await servers.stop()
  }
})
