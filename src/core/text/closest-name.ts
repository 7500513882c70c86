/** None of our names is longer; a longer one is no typing error. */
const LONGEST = 64

/**
 * The name among `names` that was probably meant by `name`, or `undefined` when none is near: a few slips (a letter
 * added, dropped, changed or swapped) or a forgotten suffix (`lease` for `leaseMs`). Letter case does not count.
 */
export function closestName(name: string, names: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined
  const given = name.toLowerCase()
  let best: string | undefined
  let bestDistance = Infinity
  for (const candidate of names) {
    const distance = editDistance(given, candidate.toLowerCase())
    const most = candidate.toLowerCase().startsWith(given)
      ? MOST_SUFFIX
      : slipsIn(Math.max(given.length, candidate.length))
    // A distance as long as the name itself would "suggest" `b` for `a`.
    if (distance <= most && distance < bestDistance && distance < given.length) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** How long a forgotten suffix may be. */
const MOST_SUFFIX = 2

/** How many edits still make a slip. In a short word two of them leave little of it: `log` is not what `foo` meant. */
function slipsIn(length: number): number {
  return length <= 4 ? 1 : Math.max(2, Math.floor(length / 3))
}

/** Edits between two words, a swap of neighbours counting as one (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        edits = Math.min(edits, beforeLast[j - 2]! + 1)
      }
      row.push(edits)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}
