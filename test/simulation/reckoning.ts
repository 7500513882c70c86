import { conditionMet } from '../../src/index.js'
import type { SimulatedRun } from '../../src/testing/simulation/history.js'
import { WORLD_STARTS_AT } from '../../src/testing/simulation/process-clock.js'
import type { SimulatedWorld } from '../../src/testing/simulation/world.js'
import type { Stage } from './types.js'

/** Everything that was said to each group, in the order in which it counted, must be what the group's value says. */
export async function reckonGroups(world: SimulatedWorld, stage: Stage): Promise<void> {
  const settled = world.runs().filter((run) => counts(run))
  settled.sort((a, b) => a.settledNth! - b.settledNth!)
  const byGroup = groupBy(settled)
  for (const [groupId, runs] of byGroup) {
    const value = (await world.group(groupId))?.value
    const expected = foldOf(runs, stage)
    world.expect(
      value === expected,
      `group ${groupId} holds what was said to it, each once and in order: ${expected}, not ${value}`,
    )
  }
}

/**
 * On plain ports nobody sees in which order things counted, and an item that folded and then died stays in the value. But
 * in a group to which everybody only adds, nobody is in it twice, and everybody who succeeded is.
 */
export async function reckonAppends(world: SimulatedWorld, stage: Stage): Promise<void> {
  const runs = world.runs().filter((run) => run.outcome?.kind === 'returned')
  for (const [groupId, ofGroup] of groupBy(runs)) {
    const says = new Set(ofGroup.map(({ id, fence }) => stage.said.get(`${id}#${fence}`)?.says))
    const root = await world.group(groupId)
    if (says.has('overwrite') || says.has('final') || says.has('append and lock') || root === undefined) continue
    const ids = (JSON.parse(root.value ?? '[]') as string[]).map((tag) => tag.split('#')[0])
    world.expect(new Set(ids).size === ids.length, `nobody is in group ${groupId} twice: ${ids.join(' ')}`)
    for (const id of new Set(ofGroup.map((run) => run.id))) {
      const added = ofGroup.filter((run) => run.id === id)
      const isSure = added.every((run) => stage.said.get(`${id}#${run.fence}`)?.says === 'append')
      if (!isSure || (await world.item(id))?.status !== 'completed') continue
      world.expect(ids.includes(id), `${id} succeeded and is in the value of its group ${groupId}: ${ids.join(' ')}`)
    }
  }
}

/** The result of every item is that of the run which settled it. */
export async function reckonResults(world: SimulatedWorld, stage: Stage): Promise<void> {
  for (const run of world.runs()) {
    if (!counts(run)) continue
    const { id, fence } = run
    const said = stage.said.get(`${id}#${fence}`)
    const expected = said?.isResult ? JSON.stringify([said.tag]) : undefined
    const result = (await world.item(id))?.result
    world.expect(
      result === expected,
      `the result of ${id} is that of the run that settled it: ${expected}, not ${result}`,
    )
  }
}

/** What comes next exists where what came before meets the condition, and nowhere else. Trees are reckoned elsewhere. */
export async function reckonLinks(world: SimulatedWorld, stage: Stage): Promise<void> {
  for (const { on, condition, next } of stage.links) {
    if (typeof condition === 'object' && !('count' in condition)) continue
    const before = await Promise.all(on.map(world.item))
    // Runs that did not settle left nothing behind; nothing to wait for says nothing about that.
    if (on.length === 0 || before.every((view) => view === undefined)) continue
    const isMet = conditionMet(condition, before)
    for (const id of next) {
      const exists = (await world.item(id)) !== undefined
      const seen = before.map((view) => view?.status).join(' ')
      world.expect(exists === isMet, `${id} follows ${on.join(' ')} (${seen}): ${isMet}, and it exists: ${exists}`)
    }
  }
}

/** The longest backoff of the scenario. */
const LONGEST_RETRY_MS = 5_000

/** Nothing starts before its delay has passed, and nothing expires before its time, however wrong the clocks are. */
export async function reckonTimes(world: SimulatedWorld, stage: Stage): Promise<void> {
  const firstRuns = new Map(
    world
      .runs()
      .toReversed()
      .map((run) => [run.id, run]),
  )
  for (const [id, { offeredAt, options }] of stage.roots) {
    const { delay = 0, timeout } = options
    const startedMs = firstRuns.get(id)?.startedMs ?? Infinity
    const earlyMs = offeredAt + delay - (WORLD_STARTS_AT + startedMs)
    world.expect(earlyMs <= 0, `${id} starts after its delay, not ${earlyMs} ms before`)
    const view = await world.item(id)
    if (timeout === undefined || view?.ending !== 'expired') continue
    // A retry that would come too late is not waited for.
    const waitMs = firstRuns.has(id) ? LONGEST_RETRY_MS : 0
    const tooSoonMs = offeredAt + timeout - waitMs - view.endAt!
    world.expect(tooSoonMs <= 0, `${id} expires after its timeout of ${timeout} ms, not ${tooSoonMs} ms before`)
  }
}

/** Its handler returned, and what it returned was settled. */
function counts({ settledNth, outcome, isOverruled }: SimulatedRun): boolean {
  return settledNth !== undefined && outcome?.kind === 'returned' && isOverruled !== true
}

function foldOf(runs: readonly SimulatedRun[], stage: Stage): string | undefined {
  let value: string[] | undefined
  for (const { id, fence } of runs) {
    const said = stage.said.get(`${id}#${fence}`)
    switch (said?.says) {
      case 'append':
        value = [...(value ?? []), said.tag]
        break
      case 'overwrite':
        value = [said.tag]
        break
      case 'final':
        return JSON.stringify([said.tag])
      case 'append and lock':
        return JSON.stringify([...(value ?? []), said.tag])
      default:
        break
    }
  }
  return value === undefined ? undefined : JSON.stringify(value)
}

function groupBy(runs: readonly SimulatedRun[]): Map<string, SimulatedRun[]> {
  const groups = new Map<string, SimulatedRun[]>()
  for (const run of runs) {
    const same = groups.get(run.groupId)
    if (same === undefined) groups.set(run.groupId, [run])
    else same.push(run)
  }
  return groups
}
