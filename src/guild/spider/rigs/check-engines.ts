import { didYouMean } from '../../../core/text/did-you-mean.js'
import type { RigTemplateEngine } from '../../fabricator/engine-design.js'
import { compileGivens, compileWhen, enginesNamed } from './expression.js'

/** What the engines of a rig are held against. */
export interface EngineRules {
  /** Why a design cannot be used; undefined when it can. */
  designProblem(designId: string): string | undefined
  /** Engines that are in the rig already, with what they depend on. */
  readonly existing?: ReadonlyMap<string, readonly string[]>
}

/** The first thing that is wrong with these engines, in words; undefined when they make a rig. */
export function engineProblem(engines: readonly RigTemplateEngine[], rules: EngineRules): string | undefined {
  const upstreams = new Map<string, readonly string[]>(rules.existing)
  for (const engine of engines) {
    if (typeof engine?.id !== 'string' || engine.id === '' || engine.id.includes('/') || engine.id.includes('.'))
      return `An engine id must be a non-empty string without "/" and ".", got ${JSON.stringify(engine?.id)}`
    if (upstreams.has(engine.id)) return `Duplicate engine id "${engine.id}"`
    upstreams.set(engine.id, engine.upstream ?? [])
  }
  for (const { id, designId } of engines) {
    const problem =
      typeof designId === 'string' && designId !== ''
        ? rules.designProblem(designId)
        : `designId must name an engine design, got ${JSON.stringify(designId)}`
    if (problem !== undefined) return `Engine "${id}": ${problem}`
  }
  for (const { id, upstream = [] } of engines) {
    if (!Array.isArray(upstream)) return `Engine "${id}": upstream must be a list of engine ids`
    const unknown = upstream.find((one) => !upstreams.has(one))
    if (unknown !== undefined) return `Engine "${id}" has the unknown upstream "${unknown}"`
  }
  const onCycle = engineOnCycle(upstreams)
  if (onCycle !== undefined) return `Engine "${onCycle}" is upstream of itself`
  for (const engine of engines) {
    const problem = expressionProblem(engine, upstreams)
    if (problem !== undefined) return problem
  }
  return undefined
}

const ENGINE_FIELDS: readonly string[] = [
  'id',
  'designId',
  'upstream',
  'givens',
  'when',
] satisfies readonly (keyof RigTemplateEngine)[]

/** A field that Spider does not read, which is nearly always a slip of the keyboard. Undefined: there is none. */
export function unknownField(engines: readonly RigTemplateEngine[]): string | undefined {
  for (const engine of engines) {
    const unknown = Object.keys(engine).find((field) => !ENGINE_FIELDS.includes(field))
    if (unknown !== undefined)
      return `Engine "${engine.id}" has the unknown field "${unknown}"${didYouMean(unknown, ENGINE_FIELDS)}`
  }
  return undefined
}

function expressionProblem(
  { id, givens, when }: RigTemplateEngine,
  upstreams: ReadonlyMap<string, readonly string[]>,
): string | undefined {
  try {
    const named = enginesNamed(compileGivens(givens), when === undefined ? undefined : compileWhen(when))
    const above = allAbove(id, upstreams)
    const stranger = named.find((one) => !above.has(one))
    return stranger === undefined
      ? undefined
      : `Engine "${id}" reads the yields of "${stranger}", which is not upstream of it`
  } catch (error) {
    return `Engine "${id}": ${(error as Error).message}`
  }
}

function allAbove(id: string, upstreams: ReadonlyMap<string, readonly string[]>): Set<string> {
  const above = new Set<string>()
  const left = [...(upstreams.get(id) ?? [])]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (above.has(next)) continue
    above.add(next)
    left.push(...(upstreams.get(next) ?? []))
  }
  return above
}

/** An engine that is above itself. */
export function engineOnCycle(upstreams: ReadonlyMap<string, readonly string[]>): string | undefined {
  return [...upstreams.keys()].find((id) => allAbove(id, upstreams).has(id))
}
