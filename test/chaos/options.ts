export type ChaosBackend = 'sqlite' | 'postgres' | 'redis'

/** Every kind of fault, with what it is about. */
export const FAULTS = {
  kills: 'a worker or a producer is killed (SIGKILL)',
  restarts: 'the server is restarted',
  crashers: 'work that kills its process, every time',
  sigstop: 'a process is stopped for longer than a lease, and goes on (SIGSTOP, SIGCONT)',
  cuts: 'connections are cut, or fall silent for a while and are cut then',
  replies: 'the server does what it is asked, and its reply is lost',
  locks: 'users hold transactions and row locks for longer than a lease (PostgreSQL)',
  clock: 'the wall clock steps by an hour, forward and back',
  disk: 'the disk is full for a while (SQLite; as root on Linux)',
} as const

export type Fault = keyof typeof FAULTS

export interface ChaosOptions {
  readonly backend: ChaosBackend
  /** How long producers produce and faults happen. */
  readonly seconds: number
  readonly workers: number
  readonly producers: number
  /** How long a lease lives without a heartbeat. */
  readonly leaseMs: number
  /** About how often each kind of fault comes. Those that are left out do not happen. */
  readonly everyMs: Partial<Readonly<Record<Fault, number>>>
  /**
   * In each round of this length about half of the kinds of fault happen, so that there are rounds in which nothing excuses a
   * lost lease. Absent: all of them, all the time. Crashers and locks never rest.
   */
  readonly roundMs?: number
  /** Items per second, of all producers together. */
  readonly perSecond: number
  /** How often Redis flushes. With `everysec` a kill may take what was accepted in the last two seconds, and nothing else. */
  readonly appendfsync?: 'always' | 'everysec'
  readonly seed: number
  readonly say?: (line: string) => void
}

/** Which faults exist on a backend. */
export function faultsOn(backend: ChaosBackend): readonly Fault[] {
  const everywhere: Fault[] = ['kills', 'crashers', 'sigstop', 'clock']
  switch (backend) {
    case 'sqlite':
      return [...everywhere, 'disk']
    case 'postgres':
      return [...everywhere, 'restarts', 'cuts', 'replies', 'locks']
    case 'redis':
      return [...everywhere, 'restarts', 'cuts', 'replies']
  }
}
