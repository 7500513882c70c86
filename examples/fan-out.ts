// A fan-out that adds up: one item per chapter, and each folds its count into the value of the group. One chapter cannot be
// read at first and is retried; one is not there at all and is dead-lettered. The group ends all the same.
// Run it with: npx tsx examples/fan-out.ts
import { createWork, defineWork, PoisonError, RetryableError } from 'millrace'

const book: Readonly<Record<string, string>> = {
  one: 'The mill stood where the river bends',
  two: 'Nobody could say who had built it',
  three: 'and yet every morning its wheel turned',
}

interface Count {
  readonly chapters: readonly string[]
  readonly words: number
}

const countChapter = defineWork(
  'count-chapter',
  (chapter: string, ctx) => {
    const text = book[chapter]
    if (text === undefined) throw new PoisonError(`there is no chapter "${chapter}"`)
    if (chapter === 'two' && ctx.attempt === 1) throw new RetryableError('the page is stuck')
    const words = text.split(' ').length
    return ctx.result<Count>(
      { chapters: [chapter], words },
      {
        // Called with the group's value so far, and again when another item was faster: nothing is lost.
        append: (sum) => ({
          chapters: [...(sum?.chapters ?? []), chapter].sort(),
          words: (sum?.words ?? 0) + words,
        }),
      },
    )
  },
  { retry: { attempts: 3, base: 50 } },
)

const countBook = defineWork('count-book', (chapters: readonly string[], ctx) =>
  ctx.queue(chapters.map((chapter) => countChapter(chapter))),
)

const work = createWork({
  work: [countBook, countChapter],
  onEvent(event) {
    if (event.kind !== 'failed') return
    console.log(`${event.error} (${event.class}, ${event.willRetry ? 'will be retried' : 'dead-lettered'})`)
  },
})

// Awaiting the handle waits for the root and for everything it queued.
const total = await work.enqueue(countBook(['one', 'two', 'three', 'four']))
console.log(`${total.words} words in chapters ${total.chapters.join(', ')}.`)
await work.stop()
