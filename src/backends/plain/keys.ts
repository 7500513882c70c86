import type { At } from '../../core/time/time.js'

/** The names of all keys in a plain store. */
export type Keys = ReturnType<typeof keysOf>

/**
 * The names are a contract: tools read them, and tests make them fail. No key beyond the first eight may contain `result:`,
 * `state:` or `:open`, because such tests match on those.
 */
export function keysOf(prefix: string) {
  // Names may hold any text, colons too. So each key ends in one name, or in a part that holds no colon; where it needs two
  // names, the length of the first says where the second begins.
  const two = (first: string, second: string) => `${first.length}:${first}:${second}`
  return {
    /** JSON of the item's state, without its result. */
    state: (id: string) => `${prefix}state:${id}`,
    /** The result, encoded by the type's codec. */
    result: (id: string) => `${prefix}result:${id}`,
    error: (id: string) => `${prefix}item:${id}:error`,
    /** The time of the last heartbeat. Expires with the lease. */
    heartbeat: (id: string) => `${prefix}hb:${id}`,
    /** How many items of the group have not settled. */
    open: (groupId: string) => `${prefix}group:${groupId}:open`,
    /** Claimed by the settlement that closed the group. */
    done: (groupId: string) => `${prefix}group:${groupId}:done`,
    /** The group's value. */
    value: (groupId: string) => `${prefix}group:${groupId}:result`,
    /** The value that locked the group, if one did. */
    final: (groupId: string) => `${prefix}group:${groupId}:final`,
    /** A caller waits for this group. */
    wait: (groupId: string) => `${prefix}wait:${groupId}`,
    /** What a run decided, written before any of it is done. */
    plan: (id: string) => `${prefix}plan:${id}`,
    /** The item has left its group's count. */
    settled: (id: string, run: number, groupId?: string) =>
      groupId === undefined ? `${prefix}settled:${id}:${run}` : `${prefix}settled-in:${run}:${two(id, groupId)}`,
    /** The item's children have entered the group's count. */
    held: (id: string, run: number, groupId?: string) => {
      if (groupId !== undefined) return `${prefix}held-in:${run}:${two(id, groupId)}`
      return run === 0 ? `${prefix}held:${id}` : `${prefix}held-again:${run}:${id}`
    },
    /** The item itself has entered it. */
    enqueued: (id: string, run: number) => `${prefix}enq:${run}:${id}`,
    /** It was taken out of the count again, because it could not be stored. */
    undone: (token: string) => `${prefix}undone:${token}`,
    /** The token of the delivery that is running. Expires with the lease. */
    run: (id: string) => `${prefix}run:${id}`,
    /** The fence of the lease whose handler has ended, while its outcome waits to be written: its lapse is no crash. */
    idle: (id: string) => `${prefix}idle:${id}`,
    crash: (id: string) => `${prefix}crash:${id}`,
    gate: (key: string) => `${prefix}gate:${key}`,
    /** How many members have ended, and how many of them completed. */
    gateEnded: (key: string) => `${prefix}gate-ended:${key}`,
    /** The gate has counted this member. */
    gateCounted: (key: string, member: string) => `${prefix}gate-counted:${two(key, member)}`,
    gateFreed: (key: string) => `${prefix}gate-freed:${key}`,
    /** Gates to notify when this item ends. */
    watch: (id: string) => `${prefix}watch:${id}`,
    cancel: (id: string) => `${prefix}cancel:${id}`,
    progress: (id: string) => `${prefix}progress:${id}`,
    pause: (what: 'queue' | 'type', name: string) => `${prefix}pause:${what}:${name}`,
    /** The right to fire a schedule at this instant. */
    fire: (name: string, at: At) =>
      // Whole seconds keep the key of `@ayepi/work`; a schedule that fires within a second needs its milliseconds too.
      `${prefix}sched:${name}:${Math.floor(at / 1000)}${at % 1000 === 0 ? '' : `.${at % 1000}`}`,
    schedule: (name: string) => `${prefix}sched:${name}:next`,
    /** Held while a record is changed, where the store cannot compare and set. */
    lock: (key: string) => `${prefix}lock:${key.slice(prefix.length)}`,
  }
}
