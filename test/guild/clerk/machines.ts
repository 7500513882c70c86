import type { PluginSource } from 'millrace/guild'
import { guild } from 'millrace/guild'
import { type ClerkApi, MANDATE, type WritTypeConfig } from 'millrace/guild/clerk'

/** Registers types when it starts, as a plugin does. */
export function typesPlugin(...types: readonly WritTypeConfig[]): PluginSource {
  return {
    package: 'types-plugin',
    plugin: {
      apparatus: {
        requires: ['clerk'],
        start: () => {
          for (const type of types) guild().apparatus<ClerkApi>('clerk').registerWritType(type)
        },
      },
    },
  }
}

/** A type with other phases than a mandate: it is reviewed before it is done, and has a long way to its failure. */
export const TASK: WritTypeConfig = {
  name: 'task',
  states: [
    { name: 'idea', classification: 'initial', allowedTransitions: ['doing'] },
    { name: 'doing', classification: 'active', allowedTransitions: ['review', 'dropped'] },
    { name: 'review', classification: 'active', allowedTransitions: ['doing', 'done', 'broken'] },
    { name: 'done', classification: 'terminal', attrs: ['success'], allowedTransitions: [] },
    { name: 'broken', classification: 'terminal', attrs: ['failure'], allowedTransitions: [] },
    { name: 'dropped', classification: 'terminal', attrs: ['cancelled'], allowedTransitions: [] },
  ],
  childrenBehavior: {
    allSuccess: { transition: 'done', resolution: 'all parts are done' },
    anyFailure: { transition: 'broken', copyResolution: true },
    parentTerminal: { transition: 'dropped', copyResolution: true },
  },
}

/** The phases of a mandate with other manners: a failed child makes it stuck, and its end makes its children fail. */
export const CHORE: WritTypeConfig = {
  ...MANDATE,
  name: 'chore',
  childrenBehavior: {
    anyFailure: { transition: 'stuck', resolution: 'see the child' },
    parentTerminal: { transition: 'failed', copyResolution: true },
  },
}
