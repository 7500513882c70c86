import { MemorySpace, memoryStacks, type StacksBackend } from 'millrace/guild/stacks'
import { FakeClock } from 'millrace/testing'
import { expect, it } from 'vitest'
import { mortal } from '../mortal-backend.js'
import { type SpiderGuild, spiderGuild } from '../spider/spider-guild.js'

const turns = async () => {
  for (let n = 0; n < 10; n += 1) await new Promise((resolve) => setImmediate(resolve))
}

function guildOn(backend: StacksBackend, clock: FakeClock, onRun: () => void = () => undefined): Promise<SpiderGuild> {
  const ground = { backend: () => backend, close: async () => undefined }
  const thrower = async () => {
    onRun()
    throw new Error('boom')
  }
  return spiderGuild(ground, {
    designs: { thrower },
    hasRetry: true,
    clock,
    config: { stacks: { watcherLeaseMs: 1_000 } },
    spider: { engineLeaseMs: 1_000 },
  })
}

/** A store whose wake-ups do not arrive: it polls now and then, and leaves the event to the other one for as long as that lives. */
function deaf(backend: StacksBackend): StacksBackend {
  backend.outbox.onAppend = () => () => undefined
  return backend
}

/** A process whose engine fails and that is killed at this call afterwards; another one goes on. Returns what it died at, if it did. */
async function killedAt(call: number, survivor: string): Promise<string | undefined> {
  const space = new MemorySpace()
  const time = new FakeClock()
  const place = () => memoryStacks({ space, clock: time })
  const victim = mortal(place())
  // Its clock stands still: once it is dead, so are its timers.
  const dying = await guildOn(victim.backend, new FakeClock(), () => victim.dieAt(call))
  const other = survivor === 'beside it' ? await guildOn(deaf(place()), time) : undefined
  const writ = await dying.post()
  expect((await dying.spider.crawl())?.action).toBe('rig-spawned')
  void dying.spider.crawl()
  await turns()
  const next = other ?? (await guildOn(place(), time))
  for (let rounds = 0; rounds < 4; rounds += 1) {
    await time.advance(1_100)
    await turns()
    await next.drain()
  }
  const rigs = (await next.rigsOf(writ)).map(({ status }) => status)
  expect([call, victim.diedAt, await next.phaseOf(writ), rigs]).toEqual([
    call,
    victim.diedAt,
    'stuck',
    ['stuck', 'stuck'],
  ])
  expect(space.watchers.get('clockworks-retry')).toMatchObject({ holder: null, cursor: space.lastSeq })
  await next.g.shutdown()
  return victim.isDead ? victim.diedAt : undefined
}

it.each(['beside it', 'after it'])(
  // 43
  'killed after any call to the store from the stuck commit on, the retry still happens, once, by a process %s',
  async (survivor) => {
    const deaths: string[] = []
    for (let call = 1; ; call += 1) {
      const died = await killedAt(call, survivor)
      if (died === undefined) break
      deaths.push(died)
    }
    // In the last run it came to its end. On the way there it was killed with the event found, taken and read, after each poll of
    // the observer, after its commit, and after its progress was stored.
    expect(deaths.join(' ')).toMatch(
      /^commit outbox.isBehind outbox.claim outbox.read begin get count .*append commit outbox.advance /,
    )
  },
  300_000,
)
