import { MemorySpace, memoryStacks } from 'millrace/guild/stacks'
import { describeStacks } from 'millrace/testing'
import { describe, it } from 'vitest'

describeStacks({
  name: 'memory',
  test: { describe, it },
  open: () => {
    const space = new MemorySpace()
    return { backend: () => memoryStacks({ space }) }
  },
})
