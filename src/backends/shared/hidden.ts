/** Adds members that a spread does not copy. */
export function withHidden<A extends object, B extends object>(shown: A, hidden: B): A & B {
  for (const name of Reflect.ownKeys(hidden) as (keyof B)[]) {
    Object.defineProperty(shown, name, { value: hidden[name], enumerable: false })
  }
  return shown as A & B
}
