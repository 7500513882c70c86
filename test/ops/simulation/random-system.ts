import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { createWork, defineWork, dependency, memoryBackend, priorityDoer, type Work } from '../../../src/index.js'
import { openActions } from '../../../src/ops/actions/open-actions.js'
import { openAudit } from '../../../src/ops/audit/audit.js'
import { openOpsContext } from '../../../src/ops/context.js'
import type { ReasonCode } from '../../../src/ops/items/explain.js'
import { openReads } from '../../../src/ops/reads.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { seededRandom } from '../../../src/testing/seeded-random.js'

const HOUR = 3_600_000

/** Something that was set up to stand where it stands: what the model knows of it. */
export interface Known {
  readonly id: string
  readonly kind: Kind
  /** What has to be said first of it. */
  readonly code: ReasonCode
}

export const KINDS = [
  'scheduled',
  'retrying',
  'dead',
  'expired',
  'cancelled',
  'completed',
  'paused type',
  'paused queue',
  'no worker',
  'unknown type',
  'gate over scheduled',
  'gate over nobody',
  'running',
  'behind another',
  'behind two',
  'cut off',
] as const
export type Kind = (typeof KINDS)[number]

/** A system in which everything stands still for a reason that is known, because it was made so. All of it by the seed. */
export async function randomSystem(seed: number) {
  const random = seededRandom(`system ${seed}`)
  const clock = new FakeClock()
  const backend = memoryBackend({ clock })
  const world = { isMended: false, release: new Set<() => void>() }
  const ok = defineWork('ok', (_: string, ctx) => ctx.void())
  const aside = defineWork('aside', (_: string, ctx) => ctx.void())
  const flaky = defineWork(
    'flaky',
    (_: string, ctx) => {
      if (!world.isMended) throw new Error('not yet')
      return ctx.void()
    },
    { retry: { attempts: 3, base: HOUR, max: HOUR, jitter: 0 } },
  )
  const poison = defineWork(
    'poison',
    (_: string, ctx) => {
      if (!world.isMended) throw new Error('it is broken')
      return ctx.void()
    },
    { retry: { attempts: 1 } },
  )
  const long = defineWork(
    'long',
    async (_: string, ctx) => {
      if (!world.isMended) await new Promise<void>((resolve) => world.release.add(resolve))
      return ctx.void()
    },
    { doer: priorityDoer({ max: 1, clock }) },
  )
  const bulk = defineWork('bulk', (_: string, ctx) => ctx.void(), { queue: backend.named('bulk') })
  const lonely = defineWork('lonely', (_: string, ctx) => ctx.void(), { queue: backend.named('lonely') })
  const cut = defineWork('cut', (_: string, ctx) => ctx.void(), { queue: backend.named('cut') })
  const foreign = defineWork('foreign', (_: string, ctx) => ctx.void())
  const producer = createWork({
    backend,
    clock,
    work: [ok, aside, flaky, poison, long, bulk, lonely, cut, foreign],
    autoStart: false,
  })
  // By the time of the query, a heartbeat has reported what runs.
  const worker = createWork({ backend, clock, work: [ok, aside, flaky, poison, long, bulk], heartbeat: 1_000 })
  const context = openOpsContext(overPlainPorts, backend, { clock })
  const actions = openActions(context)
  const systems: { stop(): Promise<unknown> }[] = [worker]
  const known: Known[] = []
  const enqueue = async (work: Work, options = {}) => {
    await producer.enqueue(work, options).accepted()
    return work.id
  }
  const add = (kind: Kind, id: string, code: ReasonCode): void => void known.push({ id, kind, code })

  const make: Readonly<Record<Kind, () => Promise<void>>> = {
    scheduled: async () => add('scheduled', await enqueue(ok('x'), { delay: HOUR }), 'scheduled'),
    retrying: async () => add('retrying', await enqueue(flaky('x')), 'retrying'),
    dead: async () => add('dead', await enqueue(poison('x')), 'dead'),
    expired: async () => add('expired', await enqueue(flaky('x'), { timeout: 1_000 }), 'dead'),
    cancelled: async () => {
      const id = await enqueue(ok('x'), { delay: HOUR })
      await actions.cancel(id, { who: 'ann' })
      add('cancelled', id, 'cancelled')
    },
    completed: async () => add('completed', await enqueue(ok('x')), 'completed'),
    'paused type': async () => {
      await actions.pause({ type: 'aside' }, { who: 'ann' })
      add('paused type', await enqueue(aside('x')), 'paused')
    },
    'paused queue': async () => {
      await actions.pause({ queue: 'bulk' }, { who: 'ann' })
      add('paused queue', await enqueue(bulk('x')), 'paused')
    },
    'no worker': async () => add('no worker', await enqueue(lonely('x')), 'no-worker'),
    'unknown type': async () => add('unknown type', await enqueue(foreign('x')), 'unknown-type'),
    'gate over scheduled': async () => {
      const on = ok('member')
      await enqueue(on, { delay: HOUR })
      add('gate over scheduled', await enqueue(dependency({ on, queue: ok('next') })), 'gate')
    },
    'gate over nobody': async () =>
      add('gate over nobody', await enqueue(dependency({ on: `nobody-${known.length}`, queue: ok('next') })), 'gate'),
    running: async () => {
      if (!known.some(({ kind }) => kind === 'running')) {
        const id = await enqueue(long('x'))
        await clock.advance(50)
        add('running', id, 'running')
      }
    },
    'behind another': async () => {
      await make.running()
      // Its worker takes one along, which waits there, and leaves the others where they are.
      if (known.some(({ kind }) => kind === 'behind another')) return
      add('behind another', await enqueue(long('y')), 'taken')
      await clock.advance(50)
    },
    'behind two': async () => {
      await make['behind another']()
      add('behind two', await enqueue(long('z')), 'waiting')
    },
    'cut off': async () => {
      const id = await enqueue(cut('x'))
      const from = [{ queue: 'cut', max: 1 }]
      await context.ledger.claim({ queues: from, leaseMs: 100, worker: 'ghost' })
      add('cut off', id, 'lease-lapsed')
    },
  }
  const count = 2 + Math.floor(random() * 8)
  for (let n = 0; n < count; n += 1) {
    const kind = KINDS[Math.floor(random() * KINDS.length)]!
    // A queue has one ghost at most: which of two it would have taken is not for the model to say.
    if (kind === 'cut off' && known.some((one) => one.kind === kind)) continue
    await make[kind]()
    if (random() < 0.5) await clock.advance(Math.floor(random() * 300))
  }
  await clock.advance(2_500)

  /** Starts a process that knows everything and serves every queue. */
  const deploy = async () => {
    const all = createWork({ backend, clock, work: [ok, aside, flaky, poison, long, bulk, lonely, cut, foreign] })
    systems.push(all)
    await clock.advance(1)
  }
  const mend = () => {
    world.isMended = true
    for (const go of world.release) go()
  }
  const close = async () => {
    mend()
    const stopped = Promise.all(systems.map((system) => system.stop()))
    await clock.advance(60_000)
    await stopped
  }
  const reads = openReads(context, { redacted: (_, value) => value, stacks: undefined })
  return { clock, context, actions, reads, ...openAudit(context), known, random, enqueue, ok, deploy, mend, close }
}
