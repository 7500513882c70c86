import type { Labels } from './stat.js'

/**
 * A place in the tree of one metric's series. The way to a series leads over its label names in order, each followed by
 * its value, so finding one builds no key: nothing is concatenated, and `{ a: 'b,c=d' }` cannot be taken for
 * `{ a: 'b', c: 'd' }`.
 */
export interface LabelNode<S> {
  series: S | undefined
  next: Map<string, LabelNode<S>> | undefined
}

/** The place of the series without labels, from which all others are reached. */
export function labelNode<S>(): LabelNode<S> {
  return { series: undefined, next: undefined }
}

/** The series with these labels, or `undefined`. */
export function findSeries<S>(root: LabelNode<S>, labels: Labels): S | undefined {
  const only = onlyKey(labels)
  if (only !== undefined) return root.next?.get(only)?.next?.get(textOf(labels[only]))?.series
  let node: LabelNode<S> | undefined = root
  for (const key of namesOf(labels)) node = node?.next?.get(key)?.next?.get(textOf(labels[key]))
  return node?.series
}

/** The series with these labels; where there is none, `open` makes it from a frozen copy of them, names in order. */
export function seriesAt<S>(root: LabelNode<S>, labels: Labels, open: (labels: Labels) => S): S {
  const found = findSeries(root, labels)
  if (found !== undefined) return found
  const copy: Record<string, string> = {}
  let node = root
  for (const key of namesOf(labels)) {
    const value = textOf(labels[key])
    // defineProperty, because plain assignment to a label named `__proto__` would be lost.
    Object.defineProperty(copy, key, { value, enumerable: true, writable: true, configurable: true })
    node = step(step(node, key), value)
  }
  const series = open(Object.freeze(copy))
  node.series = series
  return series
}

/** The name of the label when there is exactly one: by far the most common case, and it needs no array and no sort. */
function onlyKey(labels: Labels): string | undefined {
  let only: string | undefined
  for (const key in labels) {
    if (only !== undefined || labels[key] === undefined) return undefined
    only = key
  }
  return only
}

function namesOf(labels: Labels): string[] {
  return Object.keys(labels)
    .filter((key) => labels[key] !== undefined)
    .sort()
}

/** Callers without types hand in numbers too. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : String(value)
}

function step<S>(node: LabelNode<S>, key: string): LabelNode<S> {
  node.next ??= new Map()
  let next = node.next.get(key)
  if (next === undefined) {
    next = labelNode()
    node.next.set(key, next)
  }
  return next
}
