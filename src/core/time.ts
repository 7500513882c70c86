/** A duration in milliseconds. */
export type Ms = number
/** An instant in epoch milliseconds, in the time of the backend wherever a backend is involved. */
export type At = number
/** A value now or later. A port may answer either way; a synchronous throw counts as a rejection. */
export type Maybe<T> = T | Promise<T>
