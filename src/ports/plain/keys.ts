import type { At } from '../../core/time.js'

/**
 * Where everything stands in a plain store. The names are a contract: tools read them, and tests make them fail. No key
 * beyond the first eight may contain `result:`, `state:` or `:open`, because those are what such tests look for.
 */
export interface Keys {
  /** JSON of the item's state, without its result. */
  state(id: string): string
  /** The result, encoded by the type's codec. */
  result(id: string): string
  error(id: string): string
  /** When its holder was last heard of. Lives as long as the lease. */
  heartbeat(id: string): string
  /** How many items of the group have not settled. */
  open(groupId: string): string
  /** Claimed by whoever settled the last item. */
  done(groupId: string): string
  /** The group's value. */
  value(groupId: string): string
  /** The value that locked the group, if one did. */
  final(groupId: string): string
  /** Somebody waits for this group. */
  wait(groupId: string): string
  /** What a run decided, written before any of it is done. */
  plan(id: string): string
  /** The item has left its group's count. */
  settled(id: string, run: number, groupId?: string): string
  /** The item's children have entered the group's count. */
  held(id: string, run: number, groupId?: string): string
  /** The item itself has entered it. */
  enqueued(id: string, run: number): string
  /** It was taken out of the count again, because it could not be stored. */
  undone(token: string): string
  /** The token of the delivery that is running. Lives as long as the lease. */
  run(id: string): string
  /** The fence of the lease whose handler no longer runs, while its outcome waits to be written: its lapse is no crash. */
  idle(id: string): string
  crash(id: string): string
  gate(key: string): string
  /** How many members have ended, and how many of them well. */
  gateEnded(key: string): string
  gateTold(key: string, member: string): string
  gateFreed(key: string): string
  /** Gates that want to hear when this item ends. */
  watch(id: string): string
  cancel(id: string): string
  progress(id: string): string
  pause(what: 'queue' | 'type', name: string): string
  /** The right to fire a schedule at this instant. */
  fire(name: string, at: At): string
  schedule(name: string): string
  /** Held while a record is changed, where the store cannot compare and set. */
  lock(key: string): string
}

export function keysOf(prefix: string): Keys {
  // Names may hold any text, colons too. So each key ends in one name, or in a part that holds no colon; where it needs two
  // names, the length of the first says where the second begins.
  const two = (first: string, second: string) => `${first.length}:${first}:${second}`
  return {
    state: (id) => `${prefix}state:${id}`,
    result: (id) => `${prefix}result:${id}`,
    error: (id) => `${prefix}item:${id}:error`,
    heartbeat: (id) => `${prefix}hb:${id}`,
    open: (groupId) => `${prefix}group:${groupId}:open`,
    done: (groupId) => `${prefix}group:${groupId}:done`,
    value: (groupId) => `${prefix}group:${groupId}:result`,
    final: (groupId) => `${prefix}group:${groupId}:final`,
    wait: (groupId) => `${prefix}wait:${groupId}`,
    plan: (id) => `${prefix}plan:${id}`,
    settled: (id, run, groupId) =>
      groupId === undefined ? `${prefix}settled:${id}:${run}` : `${prefix}settled-in:${run}:${two(id, groupId)}`,
    held: (id, run, groupId) => {
      if (groupId !== undefined) return `${prefix}held-in:${run}:${two(id, groupId)}`
      return run === 0 ? `${prefix}held:${id}` : `${prefix}held-again:${run}:${id}`
    },
    enqueued: (id, run) => `${prefix}enq:${run}:${id}`,
    undone: (token) => `${prefix}undone:${token}`,
    run: (id) => `${prefix}run:${id}`,
    idle: (id) => `${prefix}idle:${id}`,
    crash: (id) => `${prefix}crash:${id}`,
    gate: (key) => `${prefix}gate:${key}`,
    gateEnded: (key) => `${prefix}gate-ended:${key}`,
    gateTold: (key, member) => `${prefix}gate-told:${two(key, member)}`,
    gateFreed: (key) => `${prefix}gate-freed:${key}`,
    watch: (id) => `${prefix}watch:${id}`,
    cancel: (id) => `${prefix}cancel:${id}`,
    progress: (id) => `${prefix}progress:${id}`,
    pause: (what, name) => `${prefix}pause:${what}:${name}`,
    // Whole seconds keep the key of `@ayepi/work`; a schedule that fires within a second needs its milliseconds too.
    fire: (name, at) => `${prefix}sched:${name}:${Math.floor(at / 1000)}${at % 1000 === 0 ? '' : `.${at % 1000}`}`,
    schedule: (name) => `${prefix}sched:${name}:next`,
    lock: (key) => `${prefix}lock:${key.slice(prefix.length)}`,
  }
}
