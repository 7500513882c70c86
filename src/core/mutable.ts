/** The same fields, to be written one by one while an object is made. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] }
