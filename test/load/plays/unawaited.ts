import { setImmediate as turn } from 'node:timers/promises'
import { codeOf, type Outcome, type Stage } from '../stage.js'
import { itemsOf } from './items.js'

/** How many are enqueued before the event loop has a turn: a loop of the application that never gives one is its own stall. */
const BURST = 1_000

/** A producer that awaits nothing and is only notified of what was refused. */
export async function unawaited(stage: Stage): Promise<Outcome> {
  const { items } = stage.load
  const { item, make } = itemsOf(stage)
  const w = stage.system([item])
  const refused: Record<string, number> = {}
  let accepted = 0
  let open = items
  let answered: () => void = () => undefined
  const allAnswered = new Promise<void>((resolve) => {
    answered = resolve
  })
  const answer = () => {
    open -= 1
    if (open === 0) answered()
  }
  await stage.begin()
  w.start()
  for (let n = 0; n < items; n += 1) {
    w.enqueue(make(n))
      .accepted()
      .then(
        () => {
          accepted += 1
          answer()
        },
        (error: unknown) => {
          refused[codeOf(error)] = (refused[codeOf(error)] ?? 0) + 1
          answer()
        },
      )
    if (n % BURST === BURST - 1) await turn()
  }
  await allAnswered
  await stage.ended(accepted)
  await stage.stop(w)
  const others = Object.keys(refused).filter((code) => !code.endsWith('_FULL'))
  return {
    expected: accepted,
    facts: { accepted, ...refused },
    broken: [
      ...others.map((code) => `${refused[code]} enqueues were refused with ${code}`),
      ...(accepted === 0 ? ['nothing was accepted'] : []),
    ],
  }
}
