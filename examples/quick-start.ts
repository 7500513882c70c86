import { createWork, defineWork } from 'millrace'

const greet = defineWork(
  'greet',
  async (input: { name: string }, ctx) => {
    if (ctx.attempt === 1) throw new Error('the mail server is busy') // so it is tried again
    return `Hello, ${input.name}, on attempt ${ctx.attempt}.`
  },
  { retry: { attempts: 3, base: 100 } },
)

const work = createWork({ work: [greet] })
console.log(await work.enqueue(greet({ name: 'Ada' })).result()) // Hello, Ada, on attempt 2.
await work.stop()
