import type { At, Ms } from '../../src/core/time/time.js'

/** A store in its simplest form: a map of values with their ends. What a real store does is compared with it. */
export class StoreModel {
  readonly #values = new Map<string, { readonly value: string; readonly goneAt: At }>()
  readonly #now: () => At

  constructor(now: () => At) {
    this.#now = now
  }

  get(key: string): string | undefined {
    return this.#alive(key)?.value
  }

  set(key: string, value: string, ttl: Ms = 0): void {
    this.#values.set(key, { value, goneAt: this.#end(ttl) })
  }

  delete(key: string): void {
    this.#values.delete(key)
  }

  setIfNotExists(key: string, value: string, ttl: Ms = 0): boolean {
    if (this.#alive(key) !== undefined) return false
    this.set(key, value, ttl)
    return true
  }

  increment(key: string, by: number, ttl: Ms = 0): number {
    const found = this.#alive(key)
    const sum = Number(found?.value ?? '0') + by
    this.#values.set(key, { value: String(sum), goneAt: ttl > 0 ? this.#end(ttl) : (found?.goneAt ?? Infinity) })
    return sum
  }

  incrementOnce(counter: string, marker: string, by: number, ttl: Ms = 0): { value: number; applied: boolean } {
    if (this.#alive(marker) !== undefined) return { value: Number(this.get(counter) ?? '0'), applied: false }
    this.set(marker, '1', ttl)
    return { value: this.increment(counter, by, ttl), applied: true }
  }

  compareAndSet(key: string, expected: string | undefined, next: string, ttl: Ms = 0): boolean {
    if (this.get(key) !== expected) return false
    this.set(key, next, ttl)
    return true
  }

  #alive(key: string) {
    const found = this.#values.get(key)
    return found !== undefined && found.goneAt > this.#now() ? found : undefined
  }

  #end(ttl: Ms): At {
    return ttl > 0 ? this.#now() + ttl : Infinity
  }
}
