import { openAudit } from '../../../src/ops/audit/audit.js'
import type { OpsContext } from '../../../src/ops/context.js'
import { openReads, type Reads } from '../../../src/ops/reads.js'
import type { Inspect } from '../../../src/ports/inspect.js'
import type { Ledger } from '../../../src/ports/ledger.js'
import { Chance } from '../../../src/testing/simulation/chance.js'
import { WORLD_STARTS_AT } from '../../../src/testing/simulation/process-clock.js'
import type { World } from '../../../src/testing/simulation/world.js'

const AUDITS = 20
const QUESTIONS = 2
const LOOKING_MS = 50_000
/** Between two answers little may happen, or much. */
const SLOWEST_CALLS_MS = [5, 50, 500] as const

/** Queries a fleet while it works and fails, and compares every answer with the history. */
export class Onlooker {
  readonly #world: World
  readonly #chance: Chance
  readonly #reads: Reads
  /** What was said to start at some time, and until when nothing of it may run. */
  readonly #announced: { readonly id: string; readonly saidMs: number; readonly dueMs: number }[] = []
  readonly codes = new Map<string, number>()

  constructor(world: World) {
    this.#world = world
    this.#chance = new Chance(`${world.seed}/onlooker`)
    this.#reads = openReads(deskOn(world, world.backendState.ledger), {
      redacted: (_, value) => value,
      stacks: undefined,
    })
  }

  async looks(): Promise<void> {
    await Promise.all(
      Array.from({ length: AUDITS + QUESTIONS }, async (_, n) => {
        await this.#world.clock.sleep(this.#chance.between(0, LOOKING_MS))
        if (n < AUDITS) await this.auditFinds(true)
        else await this.#asksWhy()
      }),
    )
  }

  /** A healthy fleet, however troubled, has nothing that cannot end. `isSlow`: it goes on working while the audit looks. */
  async auditFinds(isSlow: boolean): Promise<void> {
    const { ledger } = this.#world.backendState
    const context = deskOn(this.#world, isSlow ? slowed(ledger, this.#world, this.#chance) : ledger)
    const { findings, isComplete } = await openAudit(context).audit()
    this.#world.expect(isComplete, 'an audit sees everything')
    this.#world.expect(
      findings.length === 0,
      `an audit finds nothing in a fleet that is sound, not: ${findings.map(({ text }) => text).join(' ')}`,
    )
  }

  /** The first reason, of everything that there is, is true. */
  async #asksWhy(): Promise<void> {
    const { history, backendState, scheduler } = this.#world
    // Those that have ended have little to tell.
    const asked = [...history.items.values()].filter(({ hasEnded: isOver }) => !isOver || this.#chance.flip(0.1))
    for (const { id, hasEnded, ends, leases } of asked) {
      const [view] = await backendState.ledger.read([id])
      const [{ code, text }] = await this.#reads.explain(id)
      this.codes.set(code, (this.codes.get(code) ?? 0) + 1)
      const isTrue = (holds: boolean) => this.#world.expect(holds, `what is said of ${id} is true: ${text}`)
      const ending = ends.at(-1)?.ending
      switch (code) {
        case 'unknown':
          isTrue(view === undefined)
          break
        case 'completed':
          isTrue(hasEnded && (ending === 'completed' || ending === 'dropped'))
          break
        case 'cancelled':
          isTrue(hasEnded && ending === 'cancelled')
          break
        case 'dead':
          isTrue(hasEnded && ending !== 'completed' && ending !== 'dropped' && ending !== 'cancelled')
          break
        case 'running':
        case 'taken':
        case 'stopping':
          isTrue(!hasEnded && leases.length > 0 && this.#now() < view!.leaseUntil!)
          break
        case 'lease-lapsed':
          isTrue(!hasEnded && leases.length > 0 && this.#now() >= view!.leaseUntil!)
          break
        case 'gate': {
          const gate = await backendState.ledger.inspect!.gate(view!.hold!.key)
          isTrue(
            !hasEnded && gate !== undefined && gate.waiting.every((one) => history.items.get(one)?.hasEnded !== true),
          )
          break
        }
        case 'scheduled':
        case 'retrying':
          isTrue(!hasEnded && view!.dueAt! > this.#now())
          this.#announced.push({ id, saidMs: scheduler.nowMs, dueMs: view!.dueAt! - WORLD_STARTS_AT })
          break
        case 'paused': {
          const among = { queues: [view!.queue!], types: [view!.envelope.type] }
          const paused = await backendState.ledger.paused!(among)
          isTrue(!hasEnded && (paused.queues.includes(view!.queue!) || paused.types.includes(view!.envelope.type)))
          break
        }
        default:
          // It waits for its turn, for a worker, or for its end: no worker holds it.
          isTrue(!hasEnded && view?.status === 'pending' && view.hold === undefined)
      }
    }
  }

  /** What was said to come later has not run before. */
  heldTrue(): void {
    for (const { id, saidMs, dueMs } of this.#announced) {
      const early = this.#world.history.items
        .get(id)
        ?.runs.find(({ startedMs }) => startedMs > saidMs && startedMs < Math.floor(dueMs))
      this.#world.expect(early === undefined, `${id} runs at ${dueMs} as was said, not at ${early?.startedMs}`)
    }
  }

  #now(): number {
    return this.#world.clock.now()
  }
}

function deskOn(world: World, ledger: Ledger): OpsContext {
  return {
    // Neither an audit nor a question goes to the ports.
    ports: undefined as never,
    prefix: 'work:',
    ledger,
    clock: world.clock,
    now: async () => (await ledger.claim({ queues: [], leaseMs: 1_000, worker: 'onlooker' })).now,
    summaries: (ids) => ledger.inspect!.summaries(ids),
    inspect: () => ledger.inspect!,
  }
}

/** A ledger that is asked from afar: between any two of its answers the fleet goes on. */
function slowed(near: Ledger, { clock }: World, chance: Chance): Ledger {
  const slowestMs = chance.pick(SLOWEST_CALLS_MS)!
  const wrap = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(of, name) {
        const value: unknown = Reflect.get(of, name)
        if (name === 'inspect') return wrap(value as Inspect)
        if (typeof value !== 'function') return value
        return async (...args: unknown[]) => {
          await clock.sleep(chance.between(0, slowestMs))
          const answer: unknown = await (value as (...given: unknown[]) => unknown).apply(of, args)
          await clock.sleep(chance.between(0, slowestMs))
          return answer
        }
      },
    })
  return wrap(near)
}
