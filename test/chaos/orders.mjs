// What is enqueued, in which mixture, and what is written down about it.
import { dependency } from 'millrace'
import { workTypes } from './work-types.mjs'

const PARTS = 8
const MINTED_PARTS = 4
const GATE_MEMBERS = 3

/**
 * @typedef {object} Order
 * @property {string} id
 * @property {import('millrace').Work} work
 * @property {Record<string, unknown>} expected goes into the truth log when it was accepted
 */

const types = workTypes(async () => {
  throw new Error('who orders work runs nothing')
})

/** Who orders work has to know it, too: its retry policy goes with the item. */
export const orderedTypes = Object.values(types)

/** Names what one process orders, one after another. */
export class Orders {
  #count = 0
  #name
  #slowMs
  /** @type {string[]} */
  #accepted = []

  /** @param {string} name @param {number} leaseMs */
  constructor(name, leaseMs) {
    this.#name = name
    this.#slowMs = 1.5 * leaseMs
  }

  /** The next of the usual mixture. @returns {Order} */
  next() {
    const i = this.#count
    if (i % 100 === 61) return this.slow()
    if (i % 20 === 0) return this.fan()
    if (i % 20 === 5) return this.mint()
    if (i % 20 === 11 && this.hasMembers) return this.gate()
    if (i % 20 === 17) return this.coin()
    return this.leaf()
  }

  /** @returns {Order} */
  leaf() {
    const { i, id } = this.#number()
    const n = (i % 1_000) + 1
    const poison = i % 50 === 7
    const work = { ...types.leaf({ n, flaky: i % 10 === 3, poison }), id }
    return { id, work, expected: poison ? { kind: 'poison' } : { kind: 'leaf', result: n * 2 } }
  }

  /** @returns {Order} */
  slow() {
    const { i, id } = this.#number()
    const n = (i % 1_000) + 1
    const work = { ...types.slow({ n, flaky: false, poison: false, ms: this.#slowMs }), id }
    return { id, work, expected: { kind: 'leaf', result: n * 2 } }
  }

  /** @returns {Order} */
  fan() {
    const { i, id } = this.#number()
    const n = (i % 1_000) + 1
    return { id, work: { ...types.fan({ id, n, parts: PARTS }), id }, expected: { kind: 'fan', n, parts: PARTS } }
  }

  /** @returns {Order} */
  mint() {
    const { i, id } = this.#number()
    const work = { ...types.mint({ parts: MINTED_PARTS, flaky: i % 3 === 0, ms: i % 500 }), id }
    return { id, work, expected: { kind: 'mint', parts: MINTED_PARTS } }
  }

  /** @returns {Order} */
  coin() {
    const { i, id } = this.#number()
    return { id, work: { ...types.coin(i % 300), id }, expected: { kind: 'coin' } }
  }

  /** @returns {Order} */
  crasher() {
    const { id } = this.#number()
    return { id, work: { ...types.crasher(null), id }, expected: { kind: 'crasher' } }
  }

  /** Waits for the last that were accepted, or for these. @param {readonly string[]} [on] @returns {Order} */
  gate(on = [...this.#accepted]) {
    const { id } = this.#number()
    const opened = { ...types.gated(null), id: `${id}/opened` }
    const work = { ...dependency({ on, queue: opened, config: 'all-done' }), id }
    return { id, work, expected: { kind: 'gate', on } }
  }

  /** Whether a gate would have something to wait for. */
  get hasMembers() {
    return this.#accepted.length === GATE_MEMBERS
  }

  /** Something for a gate to wait for. @param {string} id */
  accepted(id) {
    this.#accepted.push(id)
    if (this.#accepted.length > GATE_MEMBERS) this.#accepted.shift()
  }

  #number() {
    const i = this.#count++
    return { i, id: `${this.#name}-${i}` }
  }
}
