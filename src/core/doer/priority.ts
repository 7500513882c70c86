import { Heap } from '../collections/heap.js'
import { type BoundedDoerOptions, boundedDoer, type HeldTask, higherFirst } from './bounded.js'
import type { Doer } from './doer.js'

/**
 * Runs at most `max` tasks at once. Of those that wait, the one with the highest `priority` is next; then the oldest; then
 * the one that came first. Only what the doer holds is ordered: give it a `buffer` that makes the choice worth while.
 */
export function priorityDoer(options: BoundedDoerOptions): Doer {
  return boundedDoer('priorityDoer', options, new Heap<HeldTask>(higherFirst))
}
