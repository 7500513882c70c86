import { UnknownPhaseError } from '../errors.js'
import type { StateAttr, WritState, WritTypeConfig } from './writ-type.js'

/** The state machine of a type. */
export interface Machine {
  readonly config: WritTypeConfig
  /** The name of the initial phase. */
  readonly initial: string
  /** The phase in which a writ is posted that is no draft. */
  readonly postTo: string
  /** Throws for a phase that the type does not have. */
  state(phase: string): WritState
  isTerminal(phase: string): boolean
  hasAttr(phase: string, attr: StateAttr): boolean
  /** Names of the phases that fit. */
  phases(fits: (state: WritState) => boolean): string[]
  /** The shortest way from one phase to another, without the first; undefined when there is none. */
  path(from: string, to: string): readonly string[] | undefined
}

/** Builds it from a checked type. */
export function machineOf(config: WritTypeConfig): Machine {
  const { name, states, postTo } = config
  const byName = new Map(states.map((state) => [state.name, state]))
  const initial = states.find(({ classification }) => classification === 'initial')!.name
  const state = (phase: string): WritState => {
    const found = byName.get(phase)
    if (found === undefined) throw new UnknownPhaseError(name, phase, [...byName.keys()])
    return found
  }
  return {
    config,
    initial,
    postTo: postTo ?? initial,
    state,
    isTerminal: (phase) => state(phase).classification === 'terminal',
    hasAttr: (phase, attr) => state(phase).attrs?.includes(attr) ?? false,
    phases: (fits) => states.filter(fits).map((found) => found.name),
    path: (from, to) => pathBetween(states, from, to),
  }
}

/**
 * The shortest legal way between two phases, without the first; empty when they are the same. Of equally short ways it is the
 * one whose steps are listed first.
 */
export function pathBetween(states: readonly WritState[], from: string, to: string): readonly string[] | undefined {
  const next = new Map(states.map(({ name, allowedTransitions }) => [name, allowedTransitions]))
  const cameFrom = new Map<string, string | undefined>([[from, undefined]])
  for (const [phase] of cameFrom) {
    if (phase === to) return wayBack(cameFrom, to)
    for (const target of next.get(phase) ?? []) if (!cameFrom.has(target)) cameFrom.set(target, phase)
  }
  return undefined
}

function wayBack(cameFrom: ReadonlyMap<string, string | undefined>, to: string): string[] {
  const way: string[] = []
  for (let at = to, before = cameFrom.get(at); before !== undefined; at = before, before = cameFrom.get(at))
    way.unshift(at)
  return way
}
