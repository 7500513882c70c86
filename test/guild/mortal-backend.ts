import type { BackendTx, StacksBackend } from 'millrace/guild/stacks'

/** A store as one process sees it that will be killed. */
export interface Mortal {
  readonly backend: StacksBackend
  /**
   * It dies at its nth call from the next commit on, which is the first: the call has its effect, but no answer arrives. To die before
   * the next call is the same.
   */
  dieAt(call: number): void
  readonly isDead: boolean
  /** Those that were counted. */
  readonly calls: readonly string[]
  /** The call that it died at. */
  readonly diedAt: string
}

const never = new Promise<never>(() => undefined)

/**
 * The store of a process that is killed at one of its calls: no call after that one has an effect, no answer arrives, and what it had
 * open is rolled back, as a database does when a connection breaks.
 */
export function mortal(whole: StacksBackend): Mortal {
  let [isArmed, isDead, diedAt]: [boolean, boolean, string] = [false, false, '']
  const calls: string[] = []
  let last = Infinity
  const open = new Set<BackendTx>()
  const die = async (name: string) => {
    isDead = true
    diedAt = name
    for (const tx of open) await tx.rollback()
  }
  const step = async (name: string, run: () => unknown): Promise<unknown> => {
    if (isDead) return never
    if (isArmed && (calls.length > 0 || name === 'commit')) calls.push(name)
    const isLast = calls.length === last
    const answer = await run()
    if (isLast) await die(name)
    return isDead ? never : answer
  }
  /** Every function of it is a step; whatever else it has is as it was. */
  const counted = <T extends object>(part: T, prefix: string, own: Partial<T> = {}): T =>
    new Proxy(part, {
      get(target, key) {
        if (key in own) return own[key as keyof T]
        const value = Reflect.get(target, key, target) as unknown
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => step(`${prefix}${String(key)}`, () => value.apply(target, args))
      },
    })
  const begin: StacksBackend['begin'] = async (options) => {
    const tx = (await step('begin', async () => {
      const begun = await whole.begin(options)
      open.add(begun)
      // It had waited for its turn, and got it when it was dead.
      if (isDead) await begun.rollback()
      return begun
    })) as BackendTx
    const end = async (name: 'commit' | 'rollback') => {
      await step(name, async () => {
        open.delete(tx)
        await tx[name]()
      })
    }
    return counted(tx, '', { commit: () => end('commit'), rollback: () => end('rollback') })
  }
  const backend = counted(whole, '', {
    begin,
    reads: counted(whole.reads, 'reads.'),
    outbox: counted(whole.outbox, 'outbox.', { onAppend: (wake) => whole.outbox.onAppend(wake) }),
    writers: counted(whole.writers, 'writers.'),
  })
  return {
    backend,
    calls,
    dieAt: (call) => {
      isArmed = true
      last = call
    },
    get isDead() {
      return isDead
    },
    get diedAt() {
      return diedAt
    },
  }
}
