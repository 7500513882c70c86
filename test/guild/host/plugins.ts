import type { Apparatus, Kit, PluginSource } from 'millrace/guild'

/** An apparatus that does nothing but write down what happens to it. */
export function part(name: string, story: string[], rest: Partial<Apparatus> = {}): PluginSource {
  const apparatus: Apparatus = {
    provides: { name },
    ...rest,
    start: async (ctx) => {
      story.push(`start ${name}`)
      await rest.start?.(ctx)
    },
    stop: async () => {
      story.push(`stop ${name}`)
      await rest.stop?.()
    },
  }
  return { package: name, plugin: { apparatus } }
}

export const kit = (name: string, contents: Kit): PluginSource => ({ package: name, plugin: { kit: contents } })
