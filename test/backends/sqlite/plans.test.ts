import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { statementTexts } from '../../../src/backends/sqlite/sql.js'
import { tablesOf } from '../../../src/backends/sqlite/tables.js'
import { openFile, temporaryFile } from './open-file.js'

type Name = keyof ReturnType<typeof statementTexts>

/** What each statement that runs often, or over many rows, must find its rows by. */
const BY: Readonly<Partial<Record<Name, readonly string[]>>> = {
  itemRow: [
    'sqlite_autoindex_item_1 (id=?)',
    'SEARCH h USING INTEGER PRIMARY KEY',
    'SEARCH l USING INTEGER PRIMARY KEY',
  ],
  profileOf: ['sqlite_autoindex_profile_1 (rest=?)'],
  profile: ['INTEGER PRIMARY KEY (rowid=?)'],
  seqsBetween: ['INTEGER PRIMARY KEY (rowid>? AND rowid<?)'],
  completeRoot: ['SEARCH i USING INTEGER PRIMARY KEY', 'SEARCH h USING INTEGER PRIMARY KEY'],
  endItem: ['INTEGER PRIMARY KEY (rowid=?)'],
  placeOf: ['SEARCH i USING INTEGER PRIMARY KEY', 'SEARCH h USING INTEGER PRIMARY KEY'],
  placeItem: ['INTEGER PRIMARY KEY (rowid=?)'],
  addReady: ['INTEGER PRIMARY KEY (rowid=?)'],
  addReadyBetween: ['INTEGER PRIMARY KEY (rowid>? AND rowid<?)'],
  dropReady: ['ready USING PRIMARY KEY (queue=? AND type=? AND rank=? AND due_at=? AND seq=?)'],
  takeReady: ['ready USING PRIMARY KEY (queue=? AND type=? AND (rank,due_at,seq)<(?,?,?))'],
  dropHeld: ['INTEGER PRIMARY KEY (rowid=?)'],
  dropAllHeld: ['INTEGER PRIMARY KEY (rowid=?)'],
  leaseOf: ['sqlite_autoindex_lease_1 (token=?)'],
  heldRow: ['sqlite_autoindex_item_1 (id=?)', 'SEARCH h USING INTEGER PRIMARY KEY'],
  lapsedLeases: ['COVERING INDEX lease_until (queue=? AND until<?)'],
  reclaim: ['INTEGER PRIMARY KEY (rowid=?)'],
  free: ['INTEGER PRIMARY KEY (rowid=?)'],
  readyTypes: ['ready USING PRIMARY KEY (queue=? AND type>?)'],
  ready: ['r USING PRIMARY KEY (queue=? AND type=?)', 'i USING INTEGER PRIMARY KEY (rowid=?)'],
  readyKeys: ['ready USING PRIMARY KEY (queue=? AND type=? AND (rank,due_at,seq)>(?,?,?))'],
  readyRows: ['INTEGER PRIMARY KEY (rowid=?)'],
  expired: ['item_expiring (queue=? AND deadline<?)'],
  anyExpired: ['item_expiring (queue=? AND deadline<?)'],
  anyReady: ['ready USING PRIMARY KEY (queue=?)'],
  anyToCome: ['item_delayed (queue=? AND wake_at<?)', 'message_ready (queue=?)'],
  nextDue: ['item_delayed (queue=? AND wake_at>?)'],
  group: ['INDEX sqlite_autoindex_item_group_1 (id=?)'],
  single: ['sqlite_autoindex_item_1 (id=?)'],
  watchers: ['PRIMARY KEY (kind=? AND id=?)'],
  gatesOf: ['gate_member_member (member=?)'],
  gatesHolding: ['gate_held_id (held_id=?)'],
  attempts: ['PRIMARY KEY (item=?)'],
  notifications: ['INTEGER PRIMARY KEY (rowid>?)'],
  idsBetween: ['sqlite_autoindex_item_1 (id>? AND id<?)'],
  nextType: ['item_listed (state=? AND queue=? AND type>?)'],
  nextQueue: ['item_listed (state=? AND queue>?)'],
  nextReadyQueue: ['ready USING PRIMARY KEY (queue>?)'],
  nextReadyType: ['ready USING PRIMARY KEY (queue=? AND type>?)'],
  listedReady: ['ready USING PRIMARY KEY (queue=? AND type=?)'],
  openByFingerprint: ['item_fingerprint (fingerprint=? AND state=? AND seq<?)'],
  listed: ['item_listed (state=? AND queue=? AND type=? AND seq<?)'],
  listedByTag: ['item_tag_listed (tag=? AND state=? AND item<?)'],
  listedByClass: ['item_class (class=? AND state=? AND seq<?)'],
  listedByFingerprint: ['item_fingerprint (fingerprint=? AND state=? AND seq<?)'],
  listedByGroup: ['item_grouped (group_id=? AND seq<?)'],
  queueWithDue: ['item_delayed (queue>?)'],
  goneCounts: ['item_keep_until (keep_until<?)'],
  ended: ['COVERING INDEX item_ended (end_at>?)'],
  goneEnded: ['item_keep_until (keep_until<?)'],
  oldestDue: ['ready USING PRIMARY KEY (queue=? AND type=? AND rank>?)'],
  failures: ['COVERING INDEX item_failures', 'item_listed (state=?)', 'PRIMARY KEY (item=? AND n=?)'],
  deadSample: ['COVERING INDEX item_failures (fingerprint=? AND class=? AND type=?)'],
  retryingSample: ['item_fingerprint (fingerprint=? AND state=?)'],
  stuckItems: ['SEARCH i USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)', 'r USING PRIMARY KEY'],
  anyGone: ['item_keep_until (keep_until<?)'],
  goneItems: ['item_keep_until (keep_until<?)'],
  goneGroups: ['item_group_keep_until (keep_until<?)'],
  sweepKeys: ['PRIMARY KEY (key=?)', 'store_keep_until (keep_until<?)'],
  readyMessages: ['message_ready (queue=?)'],
  foreignBodies: ['message_ready (queue=?)'],
  heartbeat: ['message_token (token=?)'],
  ack: ['message_token (token=?)'],
  fail: ['message_token (token=?)'],
  start: ['message_token (token=?)'],
  letters: ['dead_letter_listed (queue=? AND rowid>?)'],
  countLetters: ['dead_letter_listed (queue=?)'],
  get: ['PRIMARY KEY (key=?)'],
}

/** Statements that read a whole index or table on purpose, each with its reason. */
const SCANS: Readonly<Partial<Record<Name, string>>> = {
  pauses: 'the table holds what people have paused: a handful',
  schedules: 'people ask for all of them',
  log: 'the newest first, from the end of the table',
  counts: 'counts what is there, from the index only',
  failures: 'groups all that died of a failure, from the index only',
  sweepNotifications: 'the oldest first, a few at a time',
  sweepDeadLetters: 'the oldest first, a few at a time',
  sweepWorkers: 'the table holds the processes of the last hour',
  sweepActions: 'the oldest, by their number',
  anyMember: 'reads one row',
  workers: 'the table holds the processes of the last hour',
  lapsed: 'what is held: no more than the workers run and have fetched',
  openOfLeases: 'what is held: no more than the workers run and have fetched',
  heldTypes: 'what is held: no more than the workers run and have fetched',
  listedHeld: 'what is held: no more than the workers run and have fetched',
  size: 'what is held: no more than the workers run and have fetched',
  anyGroup: 'reads one row',
  addProfile: 'counts at most a thousand rows, when a new retry policy comes',
  readyTypes: 'walks over the types that it has found',
  endHeld: 'everything that is leased, once after each start of the machine',
  endLeases: 'everything that is leased, once after each start of the machine',
  endMessageLeases: 'everything that is leased, once after each start of the machine',
}

/** What is sorted or grouped when people ask: what is ready or held, what ended in a window, what is over and not yet swept, groups of failures. */
const GROUPED: readonly Name[] = [
  'counts',
  'listedReady',
  'openOfLeases',
  'goneCounts',
  'ended',
  'goneEnded',
  'failures',
  'retryingSample',
]

async function plans(): Promise<ReadonlyMap<Name, readonly string[]>> {
  const file = temporaryFile()
  const backend = openFile({ file, prefix: '' })
  await backend.store.get('anything')
  await backend.close()
  const db = new Database(file)
  const found = new Map<Name, readonly string[]>()
  for (const [name, sql] of Object.entries(statementTexts(tablesOf('')))) {
    const params = Array.from({ length: sql.match(/\?/g)?.length ?? 0 }, () => 1)
    const rows = db.prepare(`explain query plan ${sql}`).all(...params) as { readonly detail: string }[]
    found.set(
      name as Name,
      rows.map(({ detail }) => detail),
    )
  }
  db.close()
  return found
}

describe('the statements of the SQLite backend', () => {
  it('find their rows by an index, and sort nothing', async () => {
    const all = await plans()

    for (const [name, details] of all) {
      const text = details.join('\n')
      if (!GROUPED.includes(name)) expect(text, name).not.toMatch(/TEMP B-TREE(?! FOR DISTINCT)/)
      if (!(name in SCANS)) expect(text, name).not.toMatch(/\bSCAN (?!CONSTANT ROW|\d+-ROW VALUES|json_each)/)
      for (const by of BY[name] ?? []) expect(text, name).toContain(by)
    }
    expect(Object.keys(BY).every((name) => all.has(name as Name))).toBe(true)
    expect(Object.keys(SCANS).every((name) => all.has(name as Name))).toBe(true)
  })

  it('are planned once: none lets SQLite plan by the number that is bound as its limit', () => {
    for (const [name, sql] of Object.entries(statementTexts(tablesOf('')))) expect(sql, name).not.toMatch(/limit \?/)
  })
})
