/** One line of the guild's log, written in the transaction of what it reports. */
export interface WritLogDoc {
  readonly id: string
  readonly writId: string
  /** ISO 8601. */
  readonly at: string
  readonly who: string
  readonly why: string
  readonly what: string
}
