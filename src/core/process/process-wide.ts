/**
 * One value for the whole process, whichever copy of this package asks for it: a program may load it as ES modules and as CommonJS, or
 * install it twice. The copy that asks first makes it. Other versions read it, too, so a value of another shape takes another name.
 *
 * @returns what yields the value
 */
export function processWide<T extends object>(name: string, make: () => T): () => T {
  const place = Symbol.for(`millrace.${name}`)
  let found: T | undefined
  return () => {
    if (found !== undefined) return found
    const globals = globalThis as { [place: symbol]: unknown }
    globals[place] ??= make()
    found = globals[place] as T
    return found
  }
}
