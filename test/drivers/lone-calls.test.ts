import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/time/clock.js'
import { PostgresDriver } from '../../src/drivers/postgres/index.js'
import { RedisConnection } from '../../src/drivers/redis/index.js'
import { promisesOf } from '../support/promises-of.js'

/** Microtasks that run before `isThere`. */
async function turnsUntil(isThere: () => boolean): Promise<number> {
  for (let turns = 0; ; turns += 1) {
    if (isThere()) return turns
    if (turns > 100) throw new Error('it never came')
    await null
  }
}

const SCRIPT = { name: 'script', source: 'return 1', sha: 'sha' }

/** A connected client of Redis that notes what it is asked, and answers at once. */
function redisWith(answers: { readonly evalsha: () => Promise<unknown>; readonly eval?: () => Promise<unknown> }) {
  const calls: string[] = []
  const call = (name: 'evalsha' | 'eval') => () => {
    calls.push(name)
    return answers[name]!()
  }
  const client = { status: 'ready', on: () => {}, off: () => {}, evalsha: call('evalsha'), eval: call('eval') }
  let sleeps = 0
  const sleep = (ms: number) => {
    sleeps += 1
    return systemClock.sleep(ms)
  }
  const connection = new RedisConnection({
    // As much of a client as a script needs.
    address: { client: client as never },
    commandTimeoutMs: 50,
    onError: () => {},
    clock: { ...systemClock, sleep },
  })
  return { connection, client, calls, sleeps: () => sleeps, run: () => connection.run(SCRIPT, '{tag}', ['word']) }
}

/** A pool of PostgreSQL with one connection that notes what it is asked, and answers at once. */
function postgresWith(answer: () => Promise<{ readonly rows: unknown[] }>) {
  const calls: string[] = []
  const client = {
    on: () => {},
    query: ({ name, text }: { readonly name?: string; readonly text: string }) => {
      calls.push(name === undefined ? text : `${name}: ${text}`)
      return answer()
    },
    release: (isSpent?: boolean) => calls.push(isSpent === true ? 'discarded' : 'released'),
  }
  const connected = Promise.resolve(client)
  const pool = { connect: () => connected, on: () => {}, end: async () => {} }
  const driver = new PostgresDriver({ pool: pool as never, prepare: true, clock: systemClock, onError: () => {} })
  return { calls, run: () => driver.query({ name: 'name', text: 'select 1', values: [1] }) }
}

describe('a lone call on an idle connection', () => {
  it('leaves for Redis in the same turn, as one command', async () => {
    const { calls, run } = redisWith({ evalsha: () => Promise.resolve('reply') })
    await run()
    calls.length = 0

    const running = run()

    expect(calls).toEqual(['evalsha'])
    expect(await running).toBe('reply')
    const reply = Promise.resolve('reply')
    const again = redisWith({ evalsha: () => reply })
    await again.run()
    expect(await promisesOf(again.run)).toBeLessThanOrEqual(6)
  })

  it('is one statement on PostgreSQL, without a transaction around it, and its connection is free before its caller has the answer', async () => {
    const answer = Promise.resolve({ rows: [['row']] })
    const { calls, run } = postgresWith(() => answer)
    await run()
    calls.length = 0

    const running = run()
    expect(await turnsUntil(() => calls.length > 0)).toBeLessThanOrEqual(3)
    const freed = turnsUntil(() => calls.includes('released'))
    expect(await running).toEqual([['row']])

    expect(await freed).toBeLessThanOrEqual(2)
    expect(calls).toEqual(['name: select 1', 'released'])
    expect(await promisesOf(run)).toBeLessThanOrEqual(8)
  })
})

describe('a script that the server does not know', () => {
  const unknown = () => Promise.reject(new Error('NOSCRIPT No matching script.'))

  it('is sent whole, once', async () => {
    const { calls, run } = redisWith({ evalsha: unknown, eval: () => Promise.resolve('reply') })

    expect(await run()).toBe('reply')
    expect(calls).toEqual(['evalsha', 'eval'])
  })

  it('is not sent again and again', async () => {
    const { calls, run } = redisWith({ evalsha: unknown, eval: unknown })

    await expect(run()).rejects.toThrow('NOSCRIPT')
    expect(calls).toEqual(['evalsha', 'eval'])
  })

  it('says that the server is full, whichever way it was sent', async () => {
    const full = () => Promise.reject(new Error("OOM command not allowed when used memory > 'maxmemory'."))
    const { run } = redisWith({ evalsha: unknown, eval: full })

    await expect(run()).rejects.toMatchObject({ code: 'REDIS_FULL' })
  })
})

describe('a call on a connection that has been lost or closed', () => {
  it('waits for the connection instead of being sent into it, once for as long as a call may take', async () => {
    const { client, calls, sleeps, run } = redisWith({ evalsha: () => Promise.resolve('reply') })
    await run()
    calls.length = 0
    client.status = 'reconnecting'

    const running = run()
    running.catch(() => undefined)

    expect(calls).toEqual([])
    await expect(running).rejects.toMatchObject({ code: 'REDIS_UNREACHABLE' })
    expect(sleeps()).toBe(0)
  })

  it('is refused after a close', async () => {
    const { connection, calls, run } = redisWith({ evalsha: () => Promise.resolve('reply') })
    await run()
    await connection.close()
    calls.length = 0

    await expect(run()).rejects.toMatchObject({ code: 'REDIS_CLOSED' })
    expect(calls).toEqual([])
  })
})

describe('a statement that the server undid', () => {
  it('is repeated, and one that failed is not', async () => {
    const answers = [Object.assign(new Error('deadlock detected'), { code: '40P01', severity: 'ERROR' }), undefined]
    const undone = postgresWith(async () => {
      const error = answers.shift()
      if (error !== undefined) throw error
      return { rows: [] }
    })
    const wrong = postgresWith(() =>
      Promise.reject(Object.assign(new Error('syntax error'), { code: '42601', severity: 'ERROR' })),
    )

    expect(await undone.run()).toEqual([])
    expect(undone.calls).toEqual(['name: select 1', 'released', 'name: select 1', 'released'])
    await expect(wrong.run()).rejects.toThrow('syntax error')
    expect(wrong.calls).toEqual(['name: select 1', 'released'])
  })
})
