import { defined } from '../../core/defined.js'
import type { Redacted } from '../../core/text/redact.js'
import type { At } from '../../core/time/time.js'
import type { WritDoc } from '../../guild/clerk/writs/writ.js'
import { deadRetryOf, describeRetry, RETRY_WATCHER } from '../../guild/clockworks-retry/describe.js'
import { rigPolicyOf } from '../../guild/clockworks-retry/policy.js'
import { spiderStatusOf } from '../../guild/spider/dispatch/writ-status.js'
import { itemId } from '../../guild/spider/work/engine-items.js'
import type { WritReport } from '../api.js'
import type { Reason } from '../items/explain.js'
import { findByPrefix, type GuildBooks, type GuildStacks, reading } from './books.js'
import { rigReport, rigsOfWrit } from './rig-report.js'
import { shownRig, shownWrit } from './shown.js'
import { hasEnded, type WritFacts, writSummary } from './writ-facts.js'
import type { WritLogDoc } from './writ-log.js'
import { writReasons } from './writ-reasons.js'

const MOST_CHILDREN = 100
const MOST_RIGS = 20
const MOST_LOGGED = 20
/** The kind of link that gates by default. Spider's book of waits covers other kinds. */
const FOLLOWS = 'spider.follows'

type Explained = (id: string) => Promise<readonly [Reason, ...Reason[]]>
type Read = Omit<WritFacts, 'items' | 'observer' | 'now'> & { readonly children: readonly WritDoc[] } & {
  readonly inbound: WritFacts['outbound']
  readonly log: readonly WritLogDoc[]
}

/** One writ with everything around it, by its id or a prefix of the id. */
export async function readWrit(
  stacks: GuildStacks,
  now: At,
  idOrPrefix: string,
  redacted: Redacted,
  explained: Explained,
): Promise<WritReport | undefined> {
  const watchers = await stacks.watchers?.()
  const read = await reading(stacks, async (books) => {
    const writ = await findByPrefix('writ', books.writs, idOrPrefix)
    return writ === undefined ? undefined : readFacts(books, shownWrit(writ, redacted), redacted)
  })
  if (read === undefined) return undefined
  const watcher = watchers?.find(({ name }) => name === RETRY_WATCHER)
  const observer =
    watchers === undefined
      ? undefined
      : { isThere: watcher !== undefined, behind: watcher?.behind ?? 0, holder: watcher?.holder ?? null }
  const { writ, children, inbound, retry } = read
  const rigs = read.rigs.map((rig) => shownRig(rig, redacted))
  const reasons = writReasons({ ...read, rigs, now, observer, items: await itemsOf(rigs, explained) })
  const { resolution, runAt, deadline } = writ
  return {
    ...writSummary(writ),
    body: writ.body,
    ...defined({ resolution, runAt, deadline }),
    log: read.log.map(({ at, who, why, what }) => ({ at: Date.parse(at), who, why, what })),
    links: [...read.outbound, ...inbound].map(({ sourceId, targetId, label, kind }) => ({
      from: sourceId,
      to: targetId,
      label,
      ...(kind === null ? {} : { kind }),
    })),
    children: children.map(writSummary),
    rigs: rigs.map(rigReport),
    cap: retry.cap,
    reasons,
    ...(observer?.isThere === false ? {} : { retry: { decision: retry.decision, why: retry.reason } }),
  }
}

async function readFacts(books: GuildBooks, writ: WritDoc, redacted: Redacted): Promise<Read> {
  const { id } = writ
  const inOrder = [
    ['createdAt', 'asc'],
    ['id', 'asc'],
  ] as const
  const newestFirst = [
    ['createdAt', 'desc'],
    ['id', 'desc'],
  ] as const
  const outbound = await books.links.find({ where: [['sourceId', '=', id]], orderBy: inOrder })
  const inbound = await books.links.find({ where: [['targetId', '=', id]], orderBy: inOrder })
  const ofParent = ['parentId', '=', id] as const
  const children = await books.writs.find({ where: [ofParent], orderBy: newestFirst, limit: MOST_CHILDREN })
  const openChildren = await books.writs.find({
    where: [ofParent, ['resolvedAt', 'IS NULL']],
    orderBy: inOrder,
    limit: MOST_CHILDREN,
  })
  const rigs = await rigsOfWrit(books, id, MOST_RIGS)
  const attempts = await books.rigs.count([['writId', '=', id]])
  const dispatch = (await books.dispatch.get(id)) ?? undefined
  const waits = await books.waits.find({ where: [['writId', '=', id]] })
  const follows = outbound.filter(({ kind }) => kind === FOLLOWS).map(({ targetId }) => targetId)
  const blockerIds = [...new Set([...waits.map(({ blockerId }) => blockerId), ...follows])]
  const blocks = rigs.flatMap(({ engines }) => engines.flatMap(({ block }) => (block === undefined ? [] : [block])))
  const named = [...blockerIds, ...(spiderStatusOf(writ).blockerIds ?? []), ...conditionsOf(blocks, 'writId')]
  const others = await byIds(books.writs, named)
  const requests = await byIds(books.inputRequests, conditionsOf(blocks, 'requestId'))
  const log = await books.log.find({ where: [['writId', '=', id]], orderBy: ['at', 'desc'], limit: MOST_LOGGED })
  const running = hasEnded(writ) ? 0 : await books.slots.count()
  const [dead] = await books.deadEvents.find({ where: deadRetryOf(writ), limit: 1 })
  const shownDead = dead === undefined ? undefined : { ...dead, error: redacted('error', dead.error, writ) }
  const retry = describeRetry(writ, attempts, { policy: rigPolicyOf(books.retry, writ.type), dead: shownDead })
  return {
    writ,
    rigs,
    dispatch,
    outbound,
    inbound,
    blockerIds,
    others,
    children,
    openChildren,
    requests,
    running,
    retry,
    isRetryDead: dead !== undefined,
    log,
  }
}

function conditionsOf(blocks: readonly { readonly condition: unknown }[], field: string): string[] {
  return blocks.flatMap(({ condition }) => {
    const value = (condition as Readonly<Record<string, unknown>> | null | undefined)?.[field]
    return typeof value === 'string' ? [value] : []
  })
}

/** How many values one query may have. */
const VALUES = 50

async function byIds<T extends { readonly id: string }>(
  book: { find(query: { where: [readonly ['id', 'IN', readonly string[]]] }): Promise<T[]> },
  ids: readonly string[],
): Promise<ReadonlyMap<string, T>> {
  const wanted = [...new Set(ids)]
  const found = new Map<string, T>()
  for (let at = 0; at < wanted.length; at += VALUES) {
    const some = await book.find({ where: [['id', 'IN', wanted.slice(at, at + VALUES)]] })
    for (const one of some) found.set(one.id, one)
  }
  return found
}

/** The work items of running engines, explained by the backend that ops was opened on. */
async function itemsOf(rigs: WritFacts['rigs'], explained: Explained): Promise<WritFacts['items']> {
  const running = (rigs.at(-1)?.engines ?? []).filter(
    ({ status, item, sessionId }) => status === 'running' && item === 'pushed' && sessionId === undefined,
  )
  const asked = running.map(async (engine) => {
    const id = itemId(engine, (engine.attemptCount ?? 0) + 1)
    const [reason] = await explained(id)
    return [engine.engineId, { id, reason }] as const
  })
  return new Map(await Promise.all(asked))
}
