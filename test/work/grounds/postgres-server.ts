import type { TestProject } from 'vitest/node'
import { startPostgres } from '../../servers/index.js'

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string
  }
}

/** One private server for all files of the run; each world has its own schema. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres({ settings: { fsync: 'off', max_connections: 200 } })
  project.provide('postgresUrl', server.url)
  return () => server.stop()
}
