/** Facts that go with an error, for logs and tools: plain data only. */
export type Facts = Readonly<Record<string, string | number | boolean | undefined>>

/**
 * The base of every error that Millrace raises. Compare `code`, which is part of the API and still holds when two copies
 * of the package are installed; messages say what happened, to what, and what to try, and may improve at any time.
 */
export class MillraceError extends Error {
  readonly code: string
  readonly facts: Facts
  constructor(code: string, message: string, options: ErrorOptions & { readonly facts?: Facts } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.name = new.target.name
    this.code = code
    this.facts = Object.freeze({ ...options.facts })
  }
}
