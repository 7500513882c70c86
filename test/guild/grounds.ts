import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Apparatus, createGuild, type GuildConfig, type PluginSource, type StartedGuild } from 'millrace/guild'
import clerkPlugin, { type ClerkApi } from 'millrace/guild/clerk'
import {
  createStacks,
  MemorySpace,
  memoryStacks,
  postgresStacks,
  type Stacks,
  type StacksBackend,
  sqliteStacks,
} from 'millrace/guild/stacks'
import type { Clock } from '../../src/core/time/clock.js'

/** A place for documents that guilds can run on: several guilds on one are like several processes of a fleet. */
export interface Ground {
  /** A new backend on the same documents. */
  backend(): StacksBackend
  close(): Promise<void>
}

/** A kind of ground, by the name that tests have in their titles. */
export interface GroundKind {
  readonly name: string
  open(): Promise<Ground>
}

/** Documents in this process. */
export const onMemory: GroundKind = {
  name: 'memory',
  async open() {
    const space = new MemorySpace()
    return { backend: () => memoryStacks({ space }), close: async () => undefined }
  },
}

/** Documents in their own SQLite file. */
export const onSqlite: GroundKind = {
  name: 'SQLite',
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-guild-sqlite-'))
    const file = join(folder, 'stacks.sqlite')
    return {
      backend: () => sqliteStacks({ file }),
      close: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
}

let grounds = 0

/** Documents in a PostgreSQL server that the test has started, each ground in its own schema. */
export function onPostgres(connectionString: () => string): GroundKind {
  return {
    name: 'PostgreSQL',
    async open() {
      grounds += 1
      const schema = `guild_${process.pid}_${grounds}`
      return {
        backend: () => postgresStacks({ connectionString: connectionString(), schema, maxConnections: 6 }),
        close: async () => undefined,
      }
    },
  }
}

/** A guild with Stacks and Clerk, and what tests need of it. */
export interface ClerkGuild {
  readonly g: StartedGuild
  readonly clerk: ClerkApi
  readonly stacks: Stacks
}

/** What a guild on a ground has besides Stacks and Clerk. */
export interface ClerkGuildOptions {
  readonly config?: GuildConfig
  readonly plugins?: readonly PluginSource[]
  readonly clock?: Clock
  readonly random?: () => number
  /** Another Stacks plugin than that of the ground. */
  readonly stacks?: Apparatus
}

/** Starts a guild on a ground. */
export async function clerkGuild(ground: Ground, options: ClerkGuildOptions = {}): Promise<ClerkGuild> {
  const { plugins = [], config = {}, stacks, ...rest } = options
  const g = await createGuild({
    ...rest,
    config,
    plugins: [
      {
        package: 'millrace/guild/stacks',
        plugin: { apparatus: stacks ?? createStacks({ backend: ground.backend() }) },
      },
      { package: 'millrace/guild/clerk', plugin: clerkPlugin },
      ...plugins,
    ],
    strict: true,
  })
  return { g, clerk: g.apparatus<ClerkApi>('clerk'), stacks: g.apparatus<Stacks>('stacks') }
}
