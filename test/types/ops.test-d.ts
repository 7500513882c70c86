import type { ItemReport, ListedItem, Ops, Redact } from '../../src/ops/index.js'
import type { ItemSummary } from '../../src/ports/inspect.js'
import type { Ledger } from '../../src/ports/ledger.js'
import type { Equal, Expect } from './equal.js'

declare const ledger: Ledger
declare const ops: Ops

// Lists have no payloads; the compiler says so before the backend could.
export async function lists(): Promise<void> {
  const [item] = (await ledger.inspect!.list({ limit: 1 })).items
  // @ts-expect-error a result comes with read(ids)
  void item?.result
  // @ts-expect-error progress, too
  void item?.progress
  const [line] = (await ops.list()).items
  // @ts-expect-error a result comes with item(id)
  void line?.result
  // @ts-expect-error an input, too
  void line?.input
  const one = await ops.item('a')
  const payloads: readonly (string | undefined)[] = [one?.input, one?.result, one?.progress, one?.group?.value]
  void payloads
}
export type Listed = Expect<Equal<Extract<keyof ItemSummary, 'input' | 'result' | 'progress'>, never>>
export type Line = Expect<Equal<Extract<keyof ListedItem, 'input' | 'result' | 'progress'>, never>>
export type Report = Expect<
  Equal<Extract<keyof ItemReport, 'input' | 'result' | 'progress'>, 'input' | 'result' | 'progress'>
>

export const byKind: Redact = (value, { kind, type, id }) => (kind === 'error' ? value : `${type} ${id}`)
// @ts-expect-error it must not be async: what is shown does not wait for it
export const late: Redact = async (value) => value
// @ts-expect-error there are five kinds
export const misspelt: Redact = (value, { kind }) => (kind === 'errors' ? '' : value)
