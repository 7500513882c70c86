/** A duration in milliseconds. */
export type Ms = number
/** An instant in epoch milliseconds, in the time of the backend wherever a backend is involved. */
export type At = number
/** A value now or later. A port may answer either way; a synchronous throw counts as a rejection. */
export type MaybePromise<T> = T | Promise<T>

/** Goes on with a value: immediately if it is here, otherwise once it has come. A chain that never waits makes no promise. */
export function whenHere<T, U>(value: MaybePromise<T>, goOn: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return isPromise(value) ? value.then(goOn) : goOn(value)
}

/** Whether the value comes later. Anything with a `then` counts, also a promise of another library. */
export function isPromise<T>(value: MaybePromise<T> | PromiseLike<T>): value is Promise<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function'
}
