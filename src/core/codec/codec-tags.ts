/** The key that marks a wrapper on the wire. Part of the format: stored text is read by later versions. */
export const TAG = '$ayepi'

/** What a wrapper can stand for. */
export type Tag =
  | 'undefined'
  | 'BigInt'
  | 'Date'
  | 'Map'
  | 'Set'
  | 'Error'
  | 'Number'
  | 'Bytes'
  | 'RegExp'
  | 'URL'
  | 'Object'

/** Sets an own data property, also one called `__proto__`, which an assignment would take for the prototype. */
export function setOwn(target: object, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
  else (target as Record<string, unknown>)[key] = value
}
