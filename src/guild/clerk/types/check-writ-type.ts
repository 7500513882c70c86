import { describeValue } from '../../../core/text/describe-value.js'
import { WritTypeError } from '../errors.js'
import { pathBetween } from './state-machine.js'
import type { Classification, FamilyAction, WritState, WritTypeConfig } from './writ-type.js'

const CLASSIFICATIONS: readonly Classification[] = ['initial', 'active', 'terminal']
const TRIGGERS = ['allSuccess', 'anyFailure', 'parentTerminal'] as const
/** These move the parent, which is of this very type, so their targets can be checked here. */
const UPWARD: readonly string[] = ['allSuccess', 'anyFailure']

/**
 * Holds a type against the rules, one rule after the other over the whole of it; the first that is broken throws, with the
 * place. What it accepts can be walked: no phase is a trap for a cascade.
 */
export function checkWritType(config: unknown): asserts config is WritTypeConfig {
  if (!isRecord(config)) throw new WritTypeError('The writ type', `must be an object, got ${describeValue(config)}`)
  const { name } = config
  if (!isText(name)) throw new WritTypeError('name', `must be a non-empty string, got ${describeValue(name)}`)
  const fail: Fail = (path, problem) => {
    throw new WritTypeError(`${name}.${path}`, problem)
  }
  const { states } = config
  if (!Array.isArray(states) || states.length === 0) fail('states', 'must be a non-empty array')
  checkStates(states, fail)
  checkEdges(states as WritState[], fail)
  checkFamily(config['childrenBehavior'], states as WritState[], fail)
  checkPostTo(config['postTo'], states as WritState[], fail)
}

type Fail = (path: string, problem: string) => never

function checkStates(states: readonly unknown[], fail: Fail): asserts states is readonly WritState[] {
  const names = new Set<string>()
  for (const [i, state] of states.entries()) {
    const name = isRecord(state) ? state['name'] : undefined
    if (!isText(name)) fail(`states[${i}].name`, `must be a non-empty string, got ${describeValue(name)}`)
    else if (names.has(name)) fail(`states[${i}].name`, `is "${name}" a second time`)
    else names.add(name)
  }
  for (const [i, { classification, attrs }] of (states as WritState[]).entries()) {
    if (!CLASSIFICATIONS.includes(classification)) {
      fail(`states[${i}].classification`, `must be initial, active or terminal, got ${describeValue(classification)}`)
    }
    const isFine = attrs === undefined || (Array.isArray(attrs) && attrs.every(isText))
    if (!isFine) fail(`states[${i}].attrs`, 'must be an array of non-empty strings')
  }
  for (const [i, { allowedTransitions }] of (states as WritState[]).entries()) {
    if (!Array.isArray(allowedTransitions)) fail(`states[${i}].allowedTransitions`, 'must be an array')
    for (const [j, target] of allowedTransitions.entries()) {
      if (!names.has(target))
        fail(`states[${i}].allowedTransitions[${j}]`, `names no state of the type: ${describeValue(target)}`)
    }
  }
}

function checkEdges(states: readonly WritState[], fail: Fail): void {
  const initial = states.filter(({ classification }) => classification === 'initial')
  if (initial.length !== 1) fail('states', `must have exactly one initial state, has ${initial.length}`)
  const entered = new Set(states.flatMap(({ allowedTransitions }) => allowedTransitions))
  for (const [i, { name, classification }] of states.entries()) {
    if (classification !== 'initial' && !entered.has(name))
      fail(`states[${i}]`, `"${name}" can be entered from no state`)
  }
  for (const [i, { name, classification, allowedTransitions }] of states.entries()) {
    if (classification === 'terminal' && allowedTransitions.length > 0) {
      fail(`states[${i}].allowedTransitions`, `must be empty, since "${name}" is terminal`)
    }
  }
}

function checkFamily(behavior: unknown, states: readonly WritState[], fail: Fail): void {
  if (behavior === undefined) return
  if (!isRecord(behavior)) fail('childrenBehavior', `must be an object, got ${describeValue(behavior)}`)
  for (const trigger of Object.keys(behavior)) {
    if (!(TRIGGERS as readonly string[]).includes(trigger)) {
      fail(`childrenBehavior.${trigger}`, `is no trigger. Triggers: ${TRIGGERS.join(', ')}`)
    }
  }
  const actions = TRIGGERS.filter((trigger) => behavior[trigger] !== undefined)
  for (const trigger of actions) {
    const action = behavior[trigger]
    const target = isRecord(action) ? action['transition'] : undefined
    if (!isText(target))
      fail(`childrenBehavior.${trigger}.transition`, `must name a state, got ${describeValue(target)}`)
  }
  for (const trigger of actions) {
    if (!UPWARD.includes(trigger)) continue
    const { transition } = behavior[trigger] as FamilyAction
    const path = `childrenBehavior.${trigger}.transition`
    if (!states.some(({ name }) => name === transition)) fail(path, `names no state of the type: "${transition}"`)
    for (const { name, classification } of states) {
      if (classification !== 'terminal' && pathBetween(states, name, transition) === undefined) {
        fail(path, `is "${transition}", which cannot be reached from "${name}"`)
      }
    }
  }
  for (const trigger of actions) {
    const { resolution, copyResolution } = behavior[trigger] as { resolution?: unknown; copyResolution?: unknown }
    const path = `childrenBehavior.${trigger}`
    if (resolution !== undefined && !isText(resolution)) fail(`${path}.resolution`, 'must be a non-empty string')
    if (copyResolution !== undefined && typeof copyResolution !== 'boolean') {
      fail(`${path}.copyResolution`, `must be true or false, got ${describeValue(copyResolution)}`)
    }
    if (resolution !== undefined && copyResolution === true) {
      fail(`${path}.resolution`, 'cannot be given together with copyResolution: true')
    }
  }
}

function checkPostTo(postTo: unknown, states: readonly WritState[], fail: Fail): void {
  if (postTo === undefined) return
  const target = states.find(({ name }) => name === postTo)
  if (target === undefined) fail('postTo', `names no state of the type: ${describeValue(postTo)}`)
  if (target.classification === 'terminal') fail('postTo', `must not be terminal, and "${target.name}" is`)
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
