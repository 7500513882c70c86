import { didYouMean } from '../../../core/text/did-you-mean.js'
import type { RigTemplateEngine } from '../../fabricator/engine-design.js'
import type { FabricatorApi } from '../../fabricator/registry.js'
import type { Guild } from '../../host/guild.js'
import type { KitEntry } from '../../host/plugin.js'
import type { ResolvedSpiderConfig } from '../config.js'
import { SpiderConfigError } from '../errors.js'
import { engineProblem, unknownField } from './check-engines.js'

/** What a rig is made from. */
export interface RigTemplate {
  readonly engines: readonly RigTemplateEngine[]
  /** The engine whose yields become the writ's resolution. Default: one called `seal`, else the last that completed. */
  readonly resolutionEngine?: string
}

/** A template as it is listed. */
export interface RigTemplateInfo {
  /** Its name; one of a kit is called `<plugin>.<name>`. */
  readonly name: string
  /** The plugin that contributed it; null for the configuration. */
  readonly pluginId: string | null
  readonly template: RigTemplate
}

/** Which template a writ type has. */
export interface RigTemplateMappingInfo {
  readonly writType: string
  readonly templateName: string
  readonly pluginId: string | null
}

/** The templates of a guild. */
export interface Templates {
  readonly templates: ReadonlyMap<string, RigTemplateInfo>
  readonly mappings: ReadonlyMap<string, RigTemplateMappingInfo>
}

interface Sources {
  readonly config: ResolvedSpiderConfig
  readonly fabricator: FabricatorApi
  readonly guild: Pick<Guild, 'kits' | 'apparatuses'>
  readonly rigTemplates: readonly KitEntry[]
  readonly rigTemplateMappings: readonly KitEntry[]
  readonly warn: (message: string) => void
}

/**
 * Reads templates and mappings. What is wrong in the configuration fails startup; what is wrong in a kit is left out with a
 * warning, because one kit must not stop a guild.
 */
export function readTemplates(sources: Sources): Templates {
  const { config, fabricator, warn } = sources
  const owners = new Map(fabricator.listEngineDesigns().map(({ id, pluginId }) => [id, pluginId]))
  const known = (designId: string) =>
    owners.has(designId) ? undefined : `unknown design "${designId}"${didYouMean(designId, [...owners.keys()])}`
  const templates = new Map<string, RigTemplateInfo>()
  for (const [name, template] of Object.entries(config.rigTemplates)) {
    const problem = templateProblem(template, known) ?? unknownIn(template)
    if (problem !== undefined)
      throw new SpiderConfigError(`The rig template "${name}" cannot be used. ${problem}.`, { name })
    templates.set(name, { name, pluginId: null, template })
  }
  for (const { pluginId, value } of sources.rigTemplates) {
    const allowed = new Set([pluginId, 'spider', ...dependenciesOf(sources.guild, pluginId)])
    for (const [short, template] of entriesOf<RigTemplate>(value)) {
      const name = `${pluginId}.${short}`
      const problem = templateProblem(template, (designId) => {
        const owner = owners.get(designId)
        if (owner === undefined) return known(designId)
        return allowed.has(owner)
          ? undefined
          : `design "${designId}" is of "${owner}", which "${pluginId}" does not require`
      })
      if (problem === undefined && !templates.has(name)) templates.set(name, { name, pluginId, template })
      else warn(`The rig template "${name}" is left out. ${problem ?? 'There is one of that name already'}.`)
    }
  }
  return { templates, mappings: readMappings(sources, templates) }
}

function readMappings(sources: Sources, templates: ReadonlyMap<string, RigTemplateInfo>) {
  const mappings = new Map<string, RigTemplateMappingInfo>()
  for (const [writType, templateName] of Object.entries(sources.config.rigTemplateMappings)) {
    if (!templates.has(templateName))
      throw new SpiderConfigError(
        `The writ type "${writType}" is mapped to "${templateName}", which is no rig template${didYouMean(templateName, [...templates.keys()])}.`,
        { writType },
      )
    mappings.set(writType, { writType, templateName, pluginId: null })
  }
  for (const { pluginId, value } of sources.rigTemplateMappings) {
    for (const [writType, short] of entriesOf<string>(value)) {
      const first = mappings.get(writType)
      if (first?.pluginId === null) continue
      const templateName = [short, `${pluginId}.${short}`].find((name) => templates.has(name))
      if (first !== undefined)
        sources.warn(
          `The writ type "${writType}" is mapped by "${first.pluginId}" and again by "${pluginId}"; the first counts.`,
        )
      else if (templateName === undefined)
        sources.warn(
          `"${pluginId}" maps the writ type "${writType}" to "${short}", which is no rig template; left out.`,
        )
      else mappings.set(writType, { writType, templateName, pluginId })
    }
  }
  return mappings
}

function templateProblem(template: RigTemplate, designProblem: (id: string) => string | undefined): string | undefined {
  if (!Array.isArray(template?.engines) || template.engines.length === 0) return 'It has no engines'
  const problem = engineProblem(template.engines, { designProblem })
  if (problem !== undefined) return problem
  const { resolutionEngine, engines } = template
  if (resolutionEngine !== undefined && !engines.some(({ id }) => id === resolutionEngine))
    return `Its resolutionEngine "${resolutionEngine}" is none of its engines`
  return undefined
}

const TEMPLATE_FIELDS: readonly string[] = ['engines', 'resolutionEngine'] satisfies readonly (keyof RigTemplate)[]

/** A kit may say more of its templates, for readers of its own; in the configuration nothing else reads them. */
function unknownIn(template: RigTemplate): string | undefined {
  const unknown = Object.keys(template).find((field) => !TEMPLATE_FIELDS.includes(field))
  if (unknown !== undefined) return `It has the unknown field "${unknown}"${didYouMean(unknown, TEMPLATE_FIELDS)}`
  return unknownField(template.engines)
}

function dependenciesOf(guild: Sources['guild'], pluginId: string): readonly string[] {
  const plugin =
    guild.kits().find(({ id }) => id === pluginId)?.kit ??
    guild.apparatuses().find(({ id }) => id === pluginId)?.apparatus
  return [...(plugin?.requires ?? []), ...(plugin?.recommends ?? [])]
}

function entriesOf<T>(value: unknown): [string, T][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []
}
