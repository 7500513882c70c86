import type { Ms } from '../../core/time.js'
import type { Flow } from '../../ports/ledger.js'
import type { Desk } from './desk.js'
import { homeFrom } from './home.js'
import { msWord } from './time.js'

type Cells = readonly (string | number | null)[]

/** What ended within the window, for each queue and type, and since when the oldest waits. */
export async function flowOn(desk: Desk, windowMs: Ms): Promise<Flow[]> {
  const flat = (await desk.run('flow', [msWord(windowMs)])) as Cells
  const flows: Flow[] = []
  for (let i = 0; i < flat.length; i += 4) {
    const [home, completed, failed, oldest] = flat.slice(i, i + 4) as [string, number, number, number | null]
    const oldestDueAt = oldest === null ? undefined : { oldestDueAt: oldest }
    flows.push({ ...homeFrom(home), completed, failed, ...oldestDueAt })
  }
  return flows
}
