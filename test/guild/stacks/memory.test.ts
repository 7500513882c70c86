import { MemorySpace, memoryStacks } from 'millrace/guild/stacks'
import { describeStacks } from './clauses/describe-stacks.js'

describeStacks({
  name: 'memory',
  open: () => {
    const space = new MemorySpace()
    return { backend: () => memoryStacks({ space }) }
  },
})
