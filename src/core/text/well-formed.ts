/** The methods are in every Node that we run on; the compiler's library is older. */
interface WellFormed {
  isWellFormed(): boolean
  toWellFormed(): string
}

/** Whether it can be written as UTF-8. Half of a surrogate pair cannot: two different texts would become the same one. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as WellFormed).isWellFormed()
}

/** For texts that are only ever read by people: an error must not be lost because of one character. */
export function toWellFormed(text: string): string {
  return (text as unknown as WellFormed).toWellFormed()
}
