/** `text` as the name of a metric: other characters than `[a-zA-Z0-9_:]` become `_`, and no digit stands first. */
export function metricName(text: string): string {
  return notDigitFirst(text.replace(/[^a-zA-Z0-9_:]/gu, '_'))
}

/** `text` as the name of a label: as for metrics, but without colons; a leading `__` is Prometheus' own. */
export function labelName(text: string): string {
  return notDigitFirst(text.replace(/[^a-zA-Z0-9_]/gu, '_').replace(/^__+/, '_'))
}

function notDigitFirst(name: string): string {
  return /^[0-9]|^$/.test(name) ? `_${name}` : name
}

/** How to name things that may wish for the same name. */
export interface NameClaims<T> {
  /** The name it would like to have. */
  readonly wish: (thing: T) => string
  /** What it was called to begin with. */
  readonly raw: (thing: T) => string
  /** All names that a thing takes when it is called `name`. */
  readonly claims: (thing: T, name: string) => readonly string[]
  /** Names that are taken. */
  readonly reserved?: readonly string[]
}

/**
 * Gives each thing its own name. One whose name needed no change keeps it; of those that would become the same, the
 * others get a suffix made from their own text, which is the same in every scrape and every process.
 */
export function claimNames<T>(things: readonly T[], rules: NameClaims<T>): Map<T, string> {
  const taken = new Set(rules.reserved)
  const names = new Map<T, string>()
  const isAsWished = (thing: T) => rules.wish(thing) === rules.raw(thing)
  const ranked = [...things.filter(isAsWished), ...things.filter((thing) => !isAsWished(thing))]
  for (const thing of ranked) {
    const wish = rules.wish(thing)
    const isFree = (name: string) => !rules.claims(thing, name).some((claim) => taken.has(claim))
    let name = isFree(wish) ? wish : `${wish}_${fingerprint(rules.raw(thing))}`
    while (!isFree(name)) name += '_'
    for (const claim of rules.claims(thing, name)) taken.add(claim)
    names.set(thing, name)
  }
  return names
}

/** A short word for a text (FNV-1a): it distinguishes a few names, no more. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return (hash >>> 0).toString(36)
}
