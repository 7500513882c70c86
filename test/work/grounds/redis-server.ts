import type { TestProject } from 'vitest/node'
import { startRedis } from '../../servers/index.js'

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string
  }
}

/** One private server for all files of the run; each world has its own namespace. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startRedis()
  project.provide('redisUrl', server.url)
  return () => server.stop()
}
