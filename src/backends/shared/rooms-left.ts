import type { Room } from '../../ports/ledger.js'

/** What a claim has room for, counted down while it takes. */
export class RoomsLeft {
  readonly #rooms: readonly { readonly types: readonly string[]; left: number }[] | undefined
  readonly #byType = new Map<string, { readonly types: readonly string[]; left: number }>()
  /** Types that there is still room for. Undefined: for any. */
  readonly types: Set<string> | undefined

  constructor(rooms: readonly Room[] | undefined) {
    this.#rooms = rooms?.map(({ types, max }) => ({ types, left: max }))
    if (this.#rooms === undefined) return
    for (const room of this.#rooms) for (const type of room.types) this.#byType.set(type, room)
    this.types = typesWithRoom(rooms)
  }

  get areFull(): boolean {
    return this.types?.size === 0
  }

  /** How many it can still take, of all types together. */
  get total(): number {
    return this.#rooms?.reduce((sum, { left }) => sum + Math.max(0, left), 0) ?? Number.POSITIVE_INFINITY
  }

  /** Takes one of this type in; false: there is no room for it. */
  take(type: string): boolean {
    if (this.types === undefined) return true
    const room = this.#byType.get(type)
    if (room === undefined || room.left <= 0) return false
    room.left -= 1
    if (room.left <= 0) for (const one of room.types) this.types.delete(one)
    return true
  }
}

/** The types that a claim takes at all. Undefined: any. */
export function typesWithRoom(rooms: readonly Room[] | undefined): Set<string> | undefined {
  return rooms === undefined ? undefined : new Set(rooms.flatMap(({ types, max }) => (max > 0 ? types : [])))
}
