import type { Flags } from '../input/flags.js'

export const DEMO_FLAGS = {
  keep: { kind: 'switch', about: 'leave the file there, and say where it is' },
} as const satisfies Flags
