// A program that works, looks and closes as its last step. Argument: the address of the backend.
import { writeSync } from 'node:fs'
import { createWork, defineWork } from '../../src/index.js'
import { openOps } from '../../src/ops/index.js'
import { backendAt } from './bulk/backend-at.js'

const [, , address = ''] = process.argv
const backend = backendAt(address)
const noop = defineWork('noop', (_: null, ctx) => ctx.void())
const w = createWork({ backend, work: [noop] })
await w.enqueue(noop(null))
await w.stop()
writeSync(1, `${JSON.stringify(await openOps(backend).counts())}\n`)
await backend.close()
writeSync(1, 'closed\n')
