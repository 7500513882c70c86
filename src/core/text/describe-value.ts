import { hidePasswords } from './secrets.js'

/** Longest piece of a value that goes into a message: enough to recognise it, too little to spill a payload. */
const SHOWN_CHARACTERS = 60

/** A value as it is shown in a message: short, on one line, without passwords of addresses, and never throwing, whatever it is. */
export function describeValue(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(clip(hidePasswords(value)))
    case 'bigint':
      return `${clip(String(value))}n`
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value)
    case 'boolean':
    case 'undefined':
      return String(value)
    case 'symbol':
      return 'a symbol'
    case 'function':
      return 'a function'
    case 'object':
      return value === null ? 'null' : showObject(value)
  }
}

function showObject(value: object): string {
  try {
    if (Array.isArray(value)) return 'an array'
    if (value instanceof Date)
      return Number.isNaN(value.getTime()) ? 'an invalid Date' : `the Date ${value.toISOString()}`
  } catch {
    // A revoked or hostile proxy: it is an object, and that is all that can be known.
  }
  return 'an object'
}

function clip(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
}
