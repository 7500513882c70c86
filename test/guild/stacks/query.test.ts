import { memoryStacks } from 'millrace/guild/stacks'
import { describe, it } from 'vitest'
import { checkQueries } from './query-property.js'

describe('the query language in memory', () => {
  it('answers a thousand random queries as a plain filter over a list does', async () => {
    await checkQueries([memoryStacks()], { sets: 100, queries: 10 })
  })
})
