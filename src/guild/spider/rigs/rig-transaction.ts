import type { SpiderContext } from '../context.js'
import { type EngineRow, isActive, isSettled, type QueueRow, type RigRow } from './rig.js'

/** The engines of a rig, in the order of the template. */
export function enginesOf({ engines }: SpiderContext, rigId: string): Promise<EngineRow[]> {
  return engines.find({ where: [['rigId', '=', rigId]], orderBy: ['place', 'asc'] })
}

/** Fields to set; one given as undefined is removed. */
type Fields<T> = { readonly [K in keyof T]?: T[K] | undefined }

/**
 * One rig inside one transaction: it is read, changed and saved together with everything that follows from it (what a crawl can
 * do about it next, the slots it holds, its writ's place in the dispatch queue).
 */
export class RigTransaction {
  readonly #context: SpiderContext
  readonly #queued: readonly QueueRow[]
  readonly #dirty = new Set<string>()
  readonly #engines: Map<string, EngineRow>
  readonly #wasBusy: boolean
  #rig: RigRow

  private constructor(context: SpiderContext, rig: RigRow, engines: readonly EngineRow[], queued: readonly QueueRow[]) {
    this.#context = context
    this.#rig = rig
    this.#engines = new Map(engines.map((engine) => [engine.engineId, engine]))
    this.#wasBusy = this.isBusy
    this.#queued = queued
  }

  static async load(context: SpiderContext, rigId: string): Promise<RigTransaction | undefined> {
    const rig = await context.rigs.get(rigId)
    if (rig === null) return undefined
    const engines = await enginesOf(context, rigId)
    const queued = await context.queue.find({ where: [['rigId', '=', rigId]] })
    return new RigTransaction(context, rig, engines, queued)
  }

  /** A rig that is not there yet. */
  static fresh(context: SpiderContext, rig: RigRow, engines: readonly EngineRow[]): RigTransaction {
    const tx = new RigTransaction(context, rig, engines, [])
    for (const { engineId } of engines) tx.#dirty.add(engineId)
    return tx
  }

  get rig(): RigRow {
    return this.#rig
  }

  get isActive(): boolean {
    return isActive(this.#rig.status)
  }

  /** Whether something of it goes on: a rig that is stuck leaves those of its engines that run to come to their end. */
  get isBusy(): boolean {
    return this.isActive || this.engines.some(isRunning)
  }

  /** In the order of the template. */
  get engines(): EngineRow[] {
    return [...this.#engines.values()]
  }

  engine(id: string): EngineRow | undefined {
    return this.#engines.get(id)
  }

  need(id: string): EngineRow {
    const engine = this.#engines.get(id)
    if (engine === undefined) throw new Error(`Rig ${this.#rig.id} has no engine "${id}".`)
    return engine
  }

  setRig(fields: Fields<RigRow>): void {
    this.#rig = { ...this.#rig, ...fields } as RigRow
  }

  set(engineId: string, fields: Fields<EngineRow>): EngineRow {
    const engine = { ...this.need(engineId), ...fields } as EngineRow
    this.#engines.set(engineId, engine)
    this.#dirty.add(engineId)
    return engine
  }

  add(engine: EngineRow): void {
    this.#engines.set(engine.engineId, engine)
    this.#dirty.add(engine.engineId)
  }

  /** What completed engines yielded. */
  yields(): Record<string, unknown> {
    return Object.fromEntries(
      this.engines.flatMap(({ engineId, status, yields }) => (status === 'completed' ? [[engineId, yields]] : [])),
    )
  }

  isReady({ status, upstream }: EngineRow): boolean {
    return status === 'pending' && upstream.every((id) => isSettled(this.need(id).status))
  }

  /** Whether one more engine of this rig may run. When not, saving takes its ready engines out of the queue. */
  get hasRoom(): boolean {
    return this.#room > 0
  }

  get #room(): number {
    return this.#context.config.maxConcurrentEnginesPerRig - this.engines.filter(isRunning).length
  }

  /** The rig leaves progress. */
  end(status: RigRow['status']): void {
    this.setRig({ status, terminalAt: this.#rig.terminalAt ?? this.#context.now() })
  }

  /** Writes everything; the rig itself last, because its watchers read the engines. */
  async save(): Promise<void> {
    const context = this.#context
    if (this.isActive) this.#settleStatus()
    for (const engine of this.engines) {
      if (engine.slot === undefined || isRunning(engine)) continue
      await context.slots.delete(engine.slot)
      this.set(engine.engineId, { slot: undefined })
    }
    for (const id of this.#dirty) await context.engines.put(this.need(id))
    await this.#saveQueue()
    if (this.#wasBusy && !this.isBusy) await this.#leaveDispatchQueue()
    await context.rigs.put({ ...this.#rig, step: this.#rig.step + 1 })
  }

  #settleStatus(): void {
    const engines = this.engines
    const isDone = engines.every(({ status }) => isSettled(status)) && (this.#rig.pendingGrafts ?? []).length === 0
    if (isDone && engines.some(({ status }) => status === 'completed')) {
      this.end('completed')
      return
    }
    const isWaiting =
      engines.some(({ status }) => status === 'blocked') &&
      (this.#rig.pendingGrafts ?? []).length === 0 &&
      !engines.some((engine) => engine.status === 'running' || this.isReady(engine))
    this.setRig({ status: isWaiting ? 'blocked' : 'running' })
  }

  async #saveQueue(): Promise<void> {
    const { queue } = this.#context
    const wanted = new Map(this.#wantedQueue().map((row) => [row.id, row]))
    for (const { id } of this.#queued) if (!wanted.has(id)) await queue.delete(id)
    for (const row of wanted.values()) {
      const there = this.#queued.find(({ id }) => id === row.id)
      const isSame = there?.kind === row.kind && there.dueAt === row.dueAt && there.sessionId === row.sessionId
      if (!isSame) await queue.put(row)
    }
  }

  #wantedQueue(): QueueRow[] {
    if (!this.isActive) return this.engines.filter(isRunning).map((engine) => this.#runningRow(engine))
    const rows: QueueRow[] = []
    const { pendingGrafts = [] } = this.#rig
    if (pendingGrafts[0] !== undefined)
      rows.push({ ...this.#row('graft', '', 0, this.#rig.createdAt), engineId: pendingGrafts[0].engineId })
    const { isLimited } = this.#context
    let room = this.#room
    for (const engine of this.engines) {
      const { engineId, place, status, holdUntil, designId } = engine
      if (status === 'running') rows.push(this.#runningRow(engine))
      else if (status === 'blocked') rows.push(this.#row('block', engineId, place, this.#checkAt(engine)))
      // Without room it is not queued: the change that makes room writes these rows anew.
      else if (this.isReady(engine) && room > 0) {
        if (holdUntil !== undefined && holdUntil > this.#context.now())
          rows.push(this.#row(isLimited(designId) ? 'launch-hold' : 'hold', engineId, place, holdUntil))
        else {
          room -= 1
          rows.push(this.#row(isLimited(designId) ? 'launch' : 'run', engineId, place, this.#rig.createdAt))
        }
      }
    }
    return rows
  }

  #runningRow({ engineId, place, claim, sessionId, isSessionOver, item, startedAt }: EngineRow): QueueRow {
    if (claim?.leaseUntil !== undefined) return this.#row('lease', engineId, place, claim.leaseUntil)
    const since = startedAt ?? this.#rig.createdAt
    if (sessionId !== undefined)
      return { ...this.#row(isSessionOver ? 'collect' : 'session', engineId, place, since), sessionId }
    return this.#row(item === 'due' ? 'push' : 'item', engineId, place, since)
  }

  #checkAt({ block }: EngineRow): string {
    if (block?.lastCheckedAt === undefined) return block?.blockedAt ?? this.#rig.createdAt
    const intervalMs = this.#context.blockTypes.get(block.type)?.pollIntervalMs ?? 0
    return new Date(Date.parse(block.lastCheckedAt) + intervalMs).toISOString()
  }

  #row(kind: QueueRow['kind'], engineId: string, place: number, dueAt: string): QueueRow {
    const { id: rigId, createdAt } = this.#rig
    return {
      id: `${rigId}/${engineId}`,
      kind,
      rigId,
      engineId,
      at: `${createdAt} ${rigId} ${String(place).padStart(4, '0')}`,
      dueAt,
    }
  }

  /** Nothing is done for its writ any more: it may get another rig while it is open. */
  async #leaveDispatchQueue(): Promise<void> {
    const { dispatch } = this.#context
    const row = await dispatch.get(this.#rig.writId)
    if (row?.rigId !== this.#rig.id) return
    if (row.isOpen) await dispatch.patch(row.id, { state: 'ready', rigId: undefined })
    else await dispatch.delete(row.id)
  }
}

const isRunning = ({ status }: EngineRow): boolean => status === 'running'
