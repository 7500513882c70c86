import { Heap } from '../collections/heap.js'
import { type BoundedDoerOptions, boundedDoer, type HeldTask, olderFirst } from './bounded.js'
import type { Doer } from './doer.js'

/** Runs at most `max` tasks at the same time. Of those that wait, the oldest by `createdAt` is next; then the one that came first. */
export function ageDoer(options: BoundedDoerOptions): Doer {
  return boundedDoer('ageDoer', options, new Heap<HeldTask>(olderFirst))
}
