import type { Statements } from './sql.js'

/** Every queue and type that has items in a state: one look into the index for each, however many items there are. */
export function* homesOf(sql: Statements, state: number): IterableIterator<readonly [queue: string, type: string]> {
  for (let home = sql.nextQueue.get(state, ''); home !== undefined; ) {
    yield home
    home = sql.nextType.get(state, ...home) ?? sql.nextQueue.get(state, home[0])
  }
}
