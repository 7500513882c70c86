import { OptionTypeError } from '../options.js'
import { decode } from './codec-decode.js'
import { encode } from './codec-encode.js'
import { TAG } from './codec-tags.js'

/**
 * Turns inputs and results into text and back. `parse(stringify(x))` should give an equal `x`, and `stringify` always
 * returns a string.
 */
export interface JsonCodec {
  stringify(value: unknown): string
  parse(text: string): unknown
}

/**
 * JSON that keeps what JSON loses: `undefined`, `bigint`, `Date`, `Map`, `Set`, `Error` (with cause, errors and own
 * properties), `NaN`, `±Infinity`, `-0`, `Uint8Array` (also from a Buffer or ArrayBuffer), `RegExp` and `URL` come back as
 * they were. JSON-native data is written as plain JSON.
 *
 * An object with a `toJSON` is written as its answer; an object of any other class as its own enumerable properties;
 * functions and symbols are left out of objects, are `null` in arrays and `undefined` by themselves.
 *
 * `stringify` throws a `TypeError` for a value that contains itself or a promise, and `NESTED_TOO_DEEP` beyond 1,000 levels. `parse`
 * throws only for text that is not JSON: a payload can neither forge a value of the program nor break its reader.
 *
 * @example
 * ```ts
 * const text = defaultCodec.stringify({ at: new Date(), ids: new Set([1n]) })
 * defaultCodec.parse(text) // { at: Date, ids: Set { 1n } }
 * ```
 */
export const defaultCodec: JsonCodec = Object.freeze({
  stringify(value: unknown): string {
    // What JSON leaves out altogether (a function, a symbol) is undefined, and that has a text.
    return JSON.stringify(encode(value)) ?? JSON.stringify(encode(undefined))
  },
  parse(text: string): unknown {
    if (typeof text !== 'string') throw new OptionTypeError('parse(text)', 'a string', text)
    const parsed: unknown = JSON.parse(text)
    return mayHoldTags(text) ? decode(parsed) : parsed
  },
})

/** Without our key there is nothing to revive; it could also hide behind escapes, all of which begin like this. */
function mayHoldTags(text: string): boolean {
  return text.includes(`"${TAG}"`) || text.includes('\\u00')
}
