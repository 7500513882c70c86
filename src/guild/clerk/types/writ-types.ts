import { RegistrationError, UnknownWritTypeError } from '../errors.js'
import { checkWritType } from './check-writ-type.js'
import { type Machine, machineOf } from './state-machine.js'
import type { WritTypeConfig } from './writ-type.js'

/** The types of a guild. They are registered during startup; afterwards writs of them exist, and nothing may change. */
export class WritTypes {
  readonly #machines = new Map<string, Machine>()
  #isClosed = false

  register(config: WritTypeConfig): void {
    checkWritType(config)
    const { name } = config
    if (this.#isClosed) {
      throw new RegistrationError(`The writ type "${name}" comes too late: register it in start(), during startup.`, {
        type: name,
      })
    }
    if (this.#machines.has(name)) {
      throw new RegistrationError(`A writ type "${name}" is registered already.`, { type: name })
    }
    // A copy: what the caller does to its object later must not change the rules.
    this.#machines.set(name, machineOf(frozenCopy(config)))
  }

  /** No more types after this. The default one must be there by now. */
  close(defaultType: string): void {
    if (!this.#machines.has(defaultType)) {
      throw new UnknownWritTypeError(defaultType, this.names, 'The default type of the Clerk')
    }
    this.#isClosed = true
  }

  get names(): string[] {
    return [...this.#machines.keys()]
  }

  get all(): Machine[] {
    return [...this.#machines.values()]
  }

  /** Throws for a type that is not registered. */
  machine(type: string): Machine {
    const found = this.#machines.get(type)
    if (found === undefined) throw new UnknownWritTypeError(type, this.names)
    return found
  }
}

function frozenCopy<T>(value: T): T {
  return deepFrozen(structuredClone(value))
}

function deepFrozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) deepFrozen(member)
  return Object.freeze(value)
}
