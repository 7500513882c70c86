import { expect } from 'vitest'
import type { FailureGroup, Inspect, ItemQuery, ItemView } from '../../src/ports/inspect.js'
import type { ClaimedItem, Envelope, Lease } from '../../src/ports/item.js'
import type { Ledger, Notification } from '../../src/ports/ledger.js'
import type { CommitResult, Effect, Settlement } from '../../src/ports/settlement.js'
import { LedgerModel } from '../model/ledger-model.js'
import type { Company, Deed, Step } from './ledger-steps.js'

const QUEUES = ['default', 'bulk'] as const
const TYPES = ['t', 'u'] as const
const INBOX = 'me'
const WORKER = { id: 'w1', host: 'h', version: '1', types: [...TYPES], queues: [...QUEUES] }

/** One lease as both sides know it: only the tokens differ. */
interface Pair {
  readonly real: ClaimedItem
  readonly model: ClaimedItem
}

type Both = { readonly real: Settlement; readonly model: Settlement }

/** A ledger to be compared, and what it does not promise. */
export interface Played {
  readonly open: (now: () => number) => Ledger
  /**
   * A ledger over plain ports: settlements of one batch run concurrently, claims keep no order, a lapse shows only at the next
   * claim, versions are hashes, and people's actions are not supported.
   */
  readonly isPlain?: boolean
}

/** Plays the steps on a ledger and on the model; compares every answer, and after each step everything that can be read. */
export async function play(played: Played, steps: readonly Step[]): Promise<void> {
  const player = new Player(played)
  for (const step of steps) await player.play(step)
}

const PLAIN_DEEDS: readonly Deed['do'][] = [
  'enqueue',
  'complete',
  'append',
  'deadLetter',
  'retry',
  'release',
  'repeat',
  'gate',
]
const DAY = 86_400_000

class Player {
  #now = Date.UTC(2026, 0, 1)
  #made = 0
  readonly #real: Ledger
  readonly #model: LedgerModel
  readonly #fences = new Map<string, number>()
  readonly #held: Pair[] = []
  readonly #settled: Both[] = []
  readonly #ids = Array.from({ length: 12 }, (_, i) => `i${i}`)
  /** The groups that items join now. */
  readonly #groups = ['g0', 'g1', 'g2']
  readonly #gates: string[] = []
  readonly #notified: Notification[] = []
  readonly #woken: string[] = []
  #paused = new Set<string>()
  readonly #isPlain: boolean
  readonly #enqueued = new Map<string, Both>()
  /** What was read the time before. */
  readonly #versions = new Map<string, { readonly real: number; readonly model: number }>()
  /** As last read: what the group's value was folded on. */
  readonly #realVersions = new Map<string, number>()
  #firedAt: number | undefined

  constructor({ open, isPlain = false }: Played) {
    this.#isPlain = isPlain
    this.#real = open(() => this.#now)
    this.#model = new LedgerModel(() => this.#now)
    this.#real.onInbox(INBOX, (what) => void this.#notified.push(what))
    this.#real.onReady((queue) => void this.#woken.push(queue))
  }

  async play(step: Step): Promise<void> {
    this.#now += 1
    switch (step.do) {
      case 'commit':
        if (!this.#isPlain) await this.#commit(step.deeds)
        else
          for (const deed of step.deeds) {
            if (PLAIN_DEEDS.includes(deed.do)) await this.#commit([deed])
            await this.#compareAll()
          }
        break
      case 'claim':
        await this.#claim(step)
        break
      case 'extend': {
        const held = step.leases.flatMap((n) => this.#pair(n) ?? [])
        const of = (side: 'real' | 'model') => held.map((pair) => ({ lease: pair[side].lease, running: step.running }))
        const answers = await this.#real.extend(of('real'), step.leaseMs, WORKER)
        agree(answers, this.#model.extend(of('model'), step.leaseMs, WORKER))
        break
      }
      case 'watch':
        await this.#watch(step)
        break
      case 'pass':
        this.#now += step.ms
        break
    }
    await this.#compareAll()
  }

  /** Only for what is open: who waits for the rest reads it, and asks no more. */
  async #watch({ item, group }: Extract<Step, { do: 'watch' }>): Promise<void> {
    if (this.#isPlain) return
    const id = this.#id(item)
    const status = this.#model.read([id])[0]?.status
    const groupId = this.#groupOf(group, id)
    const what = {
      itemIds: status === 'pending' || status === 'running' ? [id] : [],
      groupIds: (this.#model.groups([groupId])[0]?.open ?? 0) > 0 ? [groupId] : [],
    }
    await this.#real.watch(INBOX, what)
    this.#model.watch(INBOX, what)
  }

  #groupOf(company: Company, id: string): string {
    if (company === 'own') return id
    // Over plain ports a group that has closed is over.
    return company === 'first' && !this.#isPlain ? this.#ids[0]! : this.#groups[company === 'first' ? 0 : company]!
  }

  /** Everything that is there, all of it running: which of it comes first is not promised. */
  async #claimAll(leaseMs: number): Promise<void> {
    const queues = QUEUES.map((queue) => ({ queue, max: 30 }))
    const ask = { queues, leaseMs, worker: WORKER.id }
    const real = await this.#real.claim(ask)
    await this.#real.markStarted?.(real.items.map(({ lease }) => lease))
    const model = this.#model.claim(ask)
    const begun = model.items.map(({ lease }) => ({ lease, running: true }))
    this.#model.extend(begun, leaseMs, WORKER)
    const sorted = (items: readonly ClaimedItem[]) =>
      items
        .toSorted((a, b) => (a.lease.id < b.lease.id ? -1 : 1))
        .map(({ envelope, crashes, gate }) => ({ envelope, crashes, gate }))
    expect(sorted(real.items)).toEqual(sorted(model.items))
    for (const claimed of model.items)
      this.#held.push({ real: real.items.find(({ lease }) => lease.id === claimed.lease.id)!, model: claimed })
  }

  async #claim({ queues: asked, leaseMs, rooms: given }: Extract<Step, { do: 'claim' }>): Promise<void> {
    if (this.#isPlain) return this.#claimAll(leaseMs)
    const queues = asked.map(({ queue, max }) => ({ queue: QUEUES[queue]!, max }))
    const rooms = given?.map(({ types, max }) => ({ types: types.map((type): string => TYPES[type]!), max }))
    const ask = { queues, leaseMs, worker: WORKER.id, ...(rooms === undefined ? {} : { rooms }) }
    const real = await this.#real.claim(ask)
    const model = this.#model.claim(ask)
    agree(real.items.map(comparable), model.items.map(comparable))
    for (const [i, { lease }] of real.items.entries()) this.#checkFence(lease, model.items[i]!.lease)
    agree(real.crashed?.toSorted(), model.crashed?.toSorted())
    expect(real.now).toBe(model.now)
    // `more` may be wrong only where a claim took all it asked for, and found nothing left.
    const taken = (isOne: (claimed: ClaimedItem) => boolean) => model.items.filter(isOne).length
    const isFull =
      queues.some(({ queue, max }) => taken(({ lease }) => lease.queue === queue) === max) ||
      rooms?.some(({ types, max }) => taken(({ envelope }) => types.includes(envelope.type)) === max)
    if (model.more || isFull !== true) agree({ more: real.more }, { more: model.more })
    if (this.#paused.size === 0 && model.nextDueAt !== undefined) expect(real.nextDueAt).toBe(model.nextDueAt)
    for (const [i, claimed] of real.items.entries()) this.#held.push({ real: claimed, model: model.items[i]! })
  }

  /** It rises with every lease of an item, not always by one. A new item begins anew. */
  #checkFence(real: Lease, model: Lease): void {
    if (model.fence > 1) expect(real.fence).toBeGreaterThan(this.#fences.get(real.id) ?? 1)
    this.#fences.set(real.id, real.fence)
  }

  async #commit(deeds: readonly Deed[]): Promise<void> {
    const batch = deeds.flatMap((deed) => this.#settlement(deed) ?? [])
    this.#notified.length = 0
    this.#woken.length = 0
    this.#model.takeSignals()
    const real = await this.#real.commit(batch.map((both) => both.real))
    const model = this.#model.commit(batch.map((both) => both.model))
    agree(
      real.map((result) => this.#answer(result)),
      model.map((result) => this.#answer(result)),
    )
    // Of a group that closes and is opened again within one batch, a backend may notify or not: both are true at their time.
    const again = new Set(batch.flatMap((both) => reopenedBy(both.model)))
    const closed = (results: readonly CommitResult[]) => closedOf(results).filter(({ groupId }) => !again.has(groupId))
    agree(closed(real), closed(model))
    for (const [i, both] of batch.entries())
      if (both.real.guard.by === 'lease' && model[i]?.kind === 'applied') this.#settled.unshift(both)
    const { inboxes, ready } = this.#model.takeSignals()
    if (this.#isPlain) {
      // A group that has closed is over for plain ports: the next items join another.
      for (const { groupId } of closedOf(model)) {
        const place = this.#groups.indexOf(groupId)
        if (place >= 0) this.#groups[place] = this.#unique(groupId)
      }
      return
    }
    const mine = inboxes.filter(({ to }) => to === INBOX)
    const sorted = (words: readonly string[]) => words.toSorted()
    agree(sorted(this.#notified.flatMap(({ itemIds }) => itemIds)), sorted(mine.flatMap(({ what }) => what.itemIds)))
    agree(sorted(this.#notified.flatMap(({ groupIds }) => groupIds)), sorted(mine.flatMap(({ what }) => what.groupIds)))
    for (const { queue } of ready) expect(this.#woken).toContain(queue)
    for (const {
      real: { effects },
    } of batch)
      for (const effect of effects) {
        if (effect.do === 'pause') this.#paused.add(`${effect.what} ${effect.name}`)
        if (effect.do === 'resume') this.#paused.delete(`${effect.what} ${effect.name}`)
      }
  }

  #answer(result: CommitResult): object {
    if (result.kind === 'applied') return { kind: 'applied' }
    if (!this.#isPlain) return result
    if (result.kind === 'conflict') return { ...result, now: { ...result.now, version: 0 } }
    return result.kind === 'repeated' || result.kind === 'stale' ? { kind: 'not again' } : result
  }

  /** What the deed commits, on either side. Undefined: there is nothing to do it to. */
  #settlement(deed: Deed): Both | undefined {
    switch (deed.do) {
      case 'enqueue': {
        const made = this.#enqueue(deed)
        if (!this.#isPlain) return made
        const id = this.#ids[deed.item % 12]!
        // Over plain ports a repetition completes what may have been left half done: it has to be the same enqueue.
        const known = this.#enqueued.get(id) ?? made
        this.#enqueued.set(id, known)
        return known
      }
      case 'complete': {
        const value = deed.value === undefined ? undefined : this.#unique(deed.value)
        return this.#byLease(deed.lease, ({ id, groupId, attempt }) => [
          // As the engine says it: first the run, and mostly one text for the item and for its group.
          { do: 'recordAttempt', id, was: { attempt, startedAt: this.#now, endedAt: this.#now, worker: 'w1' } },
          ...this.#children(id, groupId, deed.children),
          ...(value === undefined ? [] : [{ do: 'setGroupValue', groupId, value, final: deed.final } as const]),
          {
            do: 'complete',
            id,
            ending: 'completed',
            result: deed.isValue && value !== undefined ? value : `"${id}"`,
            keepMs: this.#isPlain ? DAY : deed.keepMs,
          },
          { do: 'leaveGroup', groupId, count: 1 },
        ])
      }
      case 'append':
        return this.#append(deed)
      case 'deadLetter':
        return this.#byLease(deed.lease, ({ id, groupId }) => [
          {
            do: 'recordAttempt',
            id,
            was: { attempt: 1, startedAt: 1, endedAt: 2, worker: 'w1', fingerprint: `f${deed.lease}` },
          },
          {
            do: 'deadLetter',
            id,
            ending: 'exhausted',
            class: 'retryable',
            error: 'Error: x',
            keepMs: this.#isPlain ? DAY : deed.keepMs,
          },
          { do: 'leaveGroup', groupId, count: 1 },
        ])
      case 'retry':
        return this.#byLease(deed.lease, ({ id, attempt }) => [
          ...(this.#isPlain ? [] : [this.#failed(id, attempt, deed.lease)]),
          {
            do: 'retry',
            id,
            attempt: attempt + (deed.reason === 'retry' ? 1 : 0),
            delayMs: deed.delayMs,
            reason: deed.reason,
          },
        ])
      case 'release':
        // Over plain ports a held item is in the queue twice, and its second copy knows nothing of the delay.
        if (this.#isPlain && this.#pair(deed.lease)?.real.lease.id.startsWith('held by')) return undefined
        return this.#byLease(deed.lease, ({ id }) => [
          { do: 'release', id, ...(deed.delayMs === undefined ? {} : { delayMs: deed.delayMs }) },
        ])
      case 'repeat':
        return this.#settled[deed.nth]
      case 'requestCancel':
        return this.#onItem(deed.item, ['pending'], ({ id, groupId }) => [
          { do: 'deadLetter', id, ending: 'cancelled', class: 'unclassified', error: 'cancelled', keepMs: 60_000 },
          { do: 'leaveGroup', groupId, count: 1 },
        ])
      case 'mark':
        return this.#onItem(deed.item, ['running'], ({ id }) => [{ do: 'requestCancel', id, reason: 'not needed' }])
      case 'runNow':
        return this.#onItem(deed.item, ['pending'], ({ id }) => [{ do: 'release', id, delayMs: 0 }])
      case 'redrive':
        return this.#onItem(deed.item, ['dead'], ({ id, groupId }) => [
          { do: 'joinGroup', groupId, count: 1 },
          { do: 'redrive', id, delayMs: deed.delayMs },
        ])
      case 'delete': {
        // Only what is open counts in its group.
        const isOpen = ['pending', 'running'].includes(this.#model.read([this.#id(deed.item)])[0]?.status ?? '')
        return this.#onItem(deed.item, isOpen ? ['pending', 'running'] : ['completed', 'dead'], ({ id, groupId }) => [
          { do: 'delete', id },
          ...(isOpen ? [{ do: 'leaveGroup', groupId, count: 1 } as const] : []),
        ])
      }
      case 'gate': {
        const key = `k${this.#gates.length}`
        const id = `held by ${key}`
        this.#gates.push(key)
        this.#ids.push(id)
        const members = deed.members.map((nth) => this.#id(nth)).filter((member) => member !== id)
        const envelope = this.#envelope(id, { groupId: this.#groups[0]! })
        const { need, of } = deed
        // Plain ports check the gate again at every claim, also after its time was up.
        const delayMs = this.#isPlain ? Number.POSITIVE_INFINITY : deed.delayMs
        return same({
          guard: { by: 'absent', id },
          effects: [
            { do: 'joinGroup', groupId: envelope.groupId, count: 1 },
            { do: 'enqueue', item: envelope, queue: 'default', delayMs, hold: { by: 'gate', key } },
            { do: 'openGate', key, heldId: id, members: [...new Set(members)], need, of },
          ],
        })
      }
      case 'notifyGate': {
        if (this.#gates.length === 0) return undefined
        const key = this.#gates[deed.gate % this.#gates.length]!
        return same({
          guard: { by: 'none' },
          effects: [{ do: 'notifyGate', key, member: this.#id(deed.item), completed: deed.ok }],
        })
      }
      case 'pause':
      case 'resume': {
        const name = deed.what === 'queue' ? QUEUES[deed.which]! : TYPES[deed.which]!
        return same({ guard: { by: 'none' }, effects: [{ do: deed.do, what: deed.what, name }] })
      }
      case 'fire': {
        const at = deed.isFresh ? this.#firedAt : (this.#firedAt ?? 0) - 1
        const nextAt = (this.#firedAt ?? 0) + 1000
        if (deed.isFresh) this.#firedAt = nextAt
        const schedule = { do: 'schedule', name: 'nightly', spec: '* * * * *', nextAt } as const
        return same({ guard: { by: 'schedule', name: 'nightly', at }, effects: [schedule] })
      }
    }
  }

  #unique(text: string): string {
    this.#made += 1
    return `${text} ${this.#made}`
  }

  #enqueue({
    item: nth,
    group,
    type,
    queue,
    priority,
    delayMs,
    deadlineMs,
    waits,
    folds,
    isHeld,
  }: Extract<Deed, { do: 'enqueue' }>): Both {
    const id = this.#ids[nth % 12]!
    const groupId = this.#groupOf(group, id)
    const envelope = {
      ...this.#envelope(id, { type: TYPES[type]!, groupId, priority }),
      ...(waits ? { waiter: INBOX } : {}),
      ...(deadlineMs === undefined ? {} : { deadline: this.#now + deadlineMs }),
    }
    const lease = { id, queue: QUEUES[queue]!, token: this.#unique('born'), fence: 1, until: this.#now + 30_000 }
    // Over plain ports nothing is born leased, and an enqueue is repeated as it was: it cannot be folded again.
    const isBornHeld = isHeld && !this.#isPlain
    if (isBornHeld) {
      const claimed = { lease, envelope, lapses: 0, crashes: 0, deliveries: 1 }
      this.#held.push({ real: claimed, model: claimed })
    }
    const fold = folds === 'no' || this.#isPlain ? undefined : this.#fold(groupId, id, folds === 'fresh')
    const of = (side: 'real' | 'model'): Settlement => ({
      guard: { by: 'absent', id },
      effects: [
        { do: 'joinGroup', groupId, count: 1 },
        {
          do: 'enqueue',
          item: envelope,
          queue: lease.queue,
          delayMs: isBornHeld ? 0 : delayMs,
          ...(isBornHeld ? { leasedTo: { worker: WORKER.id, token: lease.token, leaseMs: 30_000 } } : {}),
        },
        ...(fold === undefined ? [] : [fold[side]]),
      ],
    })
    return { real: of('real'), model: of('model') }
  }

  /** Each side folds on its own version: the newest, or the one it had read the time before. */
  #fold(groupId: string, id: string, isFresh: boolean): { readonly real: Effect; readonly model: Effect } {
    const now = { real: this.#realVersions.get(groupId) ?? 0, model: this.#model.groups([groupId])[0]?.version ?? 0 }
    // What a locked group would have been folded on does not matter: some ledgers answer a conflict, some ignore it.
    const isLocked = this.#model.groups([groupId])[0]?.final === true
    const versions =
      isFresh || (this.#isPlain && isLocked) ? now : (this.#versions.get(groupId) ?? { real: 0, model: 0 })
    this.#versions.set(groupId, now)
    const value = `"${this.#unique('appended by')} ${id}"`
    const of = (ifVersion: number): Effect => ({ do: 'setGroupValue', groupId, value, final: false, ifVersion })
    return { real: of(versions.real), model: of(versions.model) }
  }

  #append({ lease: nth, isFresh, ends, children }: Extract<Deed, { do: 'append' }>): Both | undefined {
    const pair = this.#pair(nth)
    if (pair === undefined) return undefined
    const { id, groupId, attempt } = pair.real.envelope
    const fold = this.#fold(groupId, id, isFresh)
    const keepMs = this.#isPlain ? DAY : 60_000
    const brought = this.#children(id, groupId, children)
    const end = (): Effect[] => {
      if (ends === 'retry' && !this.#isPlain)
        return [{ do: 'retry', id, attempt: attempt + 1, delayMs: 1000, reason: 'retry' }]
      const close: Effect = { do: 'leaveGroup', groupId, count: 1 }
      if (ends === 'complete' || this.#isPlain) return [{ do: 'complete', id, ending: 'completed', keepMs }, close]
      return [{ do: 'deadLetter', id, ending: 'aborted', class: 'poison', error: 'Error: y', keepMs }, close]
    }
    const of = (side: 'real' | 'model'): Settlement => ({
      guard: { by: 'lease', lease: pair[side].lease },
      effects: [...brought, fold[side], ...end()],
    })
    return { real: of('real'), model: of('model') }
  }

  #envelope(id: string, over: Partial<Envelope>): Envelope {
    const { type = 't', groupId = 'g0', priority = 0 } = over
    return {
      id,
      type,
      groupId,
      input: '1',
      queueAt: this.#now,
      startAt: this.#now,
      attempt: 1,
      priority,
      // What has neither tags nor anything else to look after goes its own way in some ledgers.
      ...(priority === 0 ? {} : { tags: [`tag ${type}`] }),
    }
  }

  #children(parent: string, groupId: string, count: number): Effect[] {
    if (count === 0) return []
    const pushes = Array.from({ length: count }, (): Effect => {
      this.#made += 1
      const id = `c${this.#made}`
      this.#ids.push(id)
      return { do: 'enqueue', item: { ...this.#envelope(id, { groupId }), parent }, queue: 'default', delayMs: 0 }
    })
    return [{ do: 'joinGroup', groupId, count: count }, ...pushes]
  }

  #byLease(nth: number, effects: (envelope: Envelope) => readonly Effect[]): Both | undefined {
    const pair = this.#pair(nth)
    if (pair === undefined) return undefined
    const made = effects(pair.real.envelope)
    const of = (lease: Lease): Settlement => ({ guard: { by: 'lease', lease }, effects: made })
    return { real: of(pair.real.lease), model: of(pair.model.lease) }
  }

  #onItem(
    nth: number,
    within: Extract<Settlement['guard'], { by: 'status' }>['in'],
    effects: (envelope: { readonly id: string; readonly groupId: string }) => readonly Effect[],
  ): Both {
    const row = this.#model.rows.get(this.#id(nth))
    // The group of an item that does not exist yet is unknown: then the guard is tried on an id that never exists.
    const { id, groupId } = row?.envelope ?? { id: 'nobody', groupId: 'none' }
    return same({ guard: { by: 'status', id, in: within }, effects: effects({ id, groupId }) })
  }

  #id(nth: number): string {
    return this.#ids.at(-1 - (nth % this.#ids.length))!
  }

  /** The newest leases are the likeliest to be current. */
  #pair(nth: number): Pair | undefined {
    return this.#held.at(-1 - nth)
  }

  async #comparePlainly(groups: Awaited<ReturnType<Ledger['groups']>>, names: readonly string[]): Promise<void> {
    const open = (view: ItemView | undefined) =>
      view === undefined
        ? undefined
        : [view.status === 'running' ? 'pending' : view.status, view.ending, view.result, view.error]
    agree((await this.#real.read(this.#ids)).map(open), this.#model.read(this.#ids).map(open))
    const known = (group: (typeof groups)[number]) =>
      group === undefined ? undefined : [group.open, group.value, group.final]
    agree(groups.map(known), this.#model.groups(names).map(known))
  }

  async #compareAll(): Promise<void> {
    const now = this.#now
    const names = [...this.#groups, ...this.#ids.slice(0, 12)]
    const groups = await this.#real.groups(names)
    for (const [i, group] of groups.entries()) this.#realVersions.set(names[i]!, group?.version ?? 0)
    if (this.#isPlain) return this.#comparePlainly(groups, names)
    const seen = (view: ItemView | undefined) => (view === undefined ? undefined : visible(view, now))
    agree((await this.#real.read(this.#ids)).map(seen), this.#model.read(this.#ids).map(seen))
    agree(groups, this.#model.groups(names))
    const { inspect } = this.#real
    if (inspect === undefined) return
    for (const id of this.#ids.slice(-3)) agree(await inspect.attempts(id), this.#model.attempts(id))
    // What is paused is `waiting` until a claim has met it, and `blocked` after: the model does not follow that.
    if (this.#paused.size > 0) return
    const ids = (views: readonly ItemView[]) => views.map((view) => view.envelope.id).toSorted()
    const query = {
      state: (['waiting', 'scheduled', 'active', 'dead'] as const)[now % 4]!,
      ...(now % 3 === 0 ? {} : { tag: `tag ${TYPES[now % 2]}` }),
    }
    agree(ids((await inspect.list({ ...query, limit: 1000 })).items), ids(this.#model.list(query)))
    const flat = (counted: Awaited<ReturnType<typeof inspect.counts>>) =>
      counted
        .flatMap(({ queue, type, counts }) =>
          Object.entries(counts).map(([word, n]) => `${queue} ${type} ${word} ${n}`),
        )
        .filter((line) => !line.endsWith(' 0'))
        .toSorted()
    agree(flat(await inspect.counts()), flat(this.#model.counts()))
    // Not after every step: it is as much work again as all the rest.
    if (now % 7 === 0) await this.#compareInsight(inspect, query)
  }

  #failed(id: string, attempt: number, n: number): Effect {
    const [startedAt, endedAt] = [this.#now, this.#now]
    const why = { class: 'retryable', rule: 'default', error: `Error: ${id}`, fingerprint: `f${n % 3}` } as const
    return { do: 'recordAttempt', id, was: { attempt, startedAt, endedAt, worker: 'w1', ...why } }
  }

  async #compareInsight(inspect: Inspect, query: Pick<ItemQuery, 'state' | 'tag'>): Promise<void> {
    const before = this.#now - 20
    for (const asked of [
      query,
      { ...query, before },
      { ...query, after: before },
      { before, type: TYPES[this.#now % 2]! },
    ])
      agree(await inspect.count(asked), this.#model.count(asked))
    const windowMs = [5, 50, 5000][this.#now % 3]!
    agree(inLines(await inspect.throughput(windowMs)), inLines(this.#model.flow(windowMs)))
    // Of those that failed in the same millisecond any may be the sample.
    const groups = (found: readonly FailureGroup[]) => inLines(found.map(({ sample: _, ...group }) => group))
    agree(groups(await inspect.failures(100)), groups(this.#model.failures(100)))
    const ids = (views: readonly ItemView[]) => views.map(({ envelope }) => envelope.id).toSorted()
    agree(ids((await inspect.stuckItems({ limit: 100 })).items), ids(this.#model.stuckItems()))
  }
}

/** Records as lines, whatever the order of the records and of their fields. */
const inLines = (records: readonly object[] | undefined): string[] | undefined =>
  records?.map((record) => JSON.stringify(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)))).toSorted()

/** Text first: it is ten times as fast, and nearly always the answer. */
function agree<T>(actual: T, expected: T): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) expect(actual).toEqual(expected)
}

const same = (settlement: Settlement): Both => ({ real: settlement, model: settlement })

/** What a claim returns, without the token and the fence. */
const comparable = ({ lease, envelope, lapses, crashes, deliveries, gate }: ClaimedItem) => {
  const { id, queue, until } = lease
  return { lease: { id, queue, until }, envelope, lapses, crashes, deliveries, gate }
}

/** Which settlement of a batch closed a group is the ledger's own affair, as long as one did. */
const reopenedBy = ({ effects }: Settlement): string[] =>
  effects.some((effect) => effect.do === 'redrive')
    ? effects.flatMap((effect) => (effect.do === 'joinGroup' ? [effect.groupId] : []))
    : []

const closedOf = (results: readonly CommitResult[]) =>
  results
    .flatMap((result) => (result.kind === 'applied' ? result.closed : []))
    .toSorted((a, b) => (a.groupId < b.groupId ? -1 : 1))

/** The part of a view that is a promise at any moment. */
function visible(view: ItemView, now: number) {
  const { envelope, queue, status, ending, class: kind, hold, dueAt, worker, leaseUntil, result, error, endAt } = view
  return {
    envelope,
    queue,
    status,
    ending,
    kind,
    hold: hold?.by === 'pause' ? undefined : hold,
    dueAt: dueAt !== undefined && dueAt > now ? dueAt : undefined,
    worker,
    leaseUntil,
    runAt: status === 'running' ? view.runAt : undefined,
    running: view.running,
    result,
    error,
    endAt,
    lapses: view.lapses ?? 0,
    crashes: view.crashes ?? 0,
  }
}
