/** How far a delivery has come: fetched, running, waiting for other work with its place lent, or only to be settled. */
export type Stage = 'waiting' | 'running' | 'lent' | 'ended'

/** How many deliveries a run of the loop holds at each stage. What is settled durably is held no longer. */
export type Held = Readonly<Record<Stage, number>>

/** Counts deliveries as they move on. One object per run of the loop, changed by its deliveries. */
export class Stages implements Held {
  waiting = 0
  running = 0
  lent = 0
  ended = 0
}
