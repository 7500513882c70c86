import fc from 'fast-check'

const WORDS = ['name', 'message', 'cause', 'code', 'status', 'statusCode', 'headers', 'response', 'errors', 'when']

/** A proxy that has been revoked: every operation on it but `typeof` throws. */
export function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** A proxy whose every trap throws. */
export function allThrowing(): object {
  const boom = (): never => {
    throw new Error('trap')
  }
  return new Proxy(
    {},
    { get: boom, has: boom, getPrototypeOf: boom, ownKeys: boom, getOwnPropertyDescriptor: boom, isExtensible: boom },
  )
}

/** An Error whose usual properties are getters that throw. */
export function throwingGetters(): Error {
  const error = new Error('hidden')
  // `stack` first: V8 makes it on first sight, and would read the name for it.
  for (const key of ['stack', ...WORDS]) {
    Object.defineProperty(error, key, {
      get() {
        throw new Error(`getter of ${key}`)
      },
    })
  }
  return error
}

/** An object whose conversions to a primitive all throw. */
export function unprintable(): object {
  const boom = (): never => {
    throw new Error('no text')
  }
  return { toString: boom, valueOf: boom, [Symbol.toPrimitive]: boom }
}

/** An error that is its own cause, through one in between. */
export function cyclic(): Error {
  const outer = new Error('outer')
  outer.cause = new Error('inner', { cause: outer })
  return outer
}

/** An error with a new cause each time that one is asked for. */
export function endless(): object {
  return {
    name: 'Endless',
    message: 'no end',
    get cause() {
      return endless()
    },
  }
}

/** An AggregateError that contains itself. */
export function selfContaining(): AggregateError {
  const aggregate = new AggregateError([new Error('x')], 'all')
  aggregate.errors.push(aggregate)
  return aggregate
}

/** How to make something to throw. A recipe, because fast-check inspects the values it makes, and these throw. */
export type Recipe = () => unknown

/** Anything that can be thrown: values, objects that look like errors, hostile ones, and nests of them all. */
export function thrown(): fc.Arbitrary<Recipe> {
  const leaf: fc.Arbitrary<Recipe> = fc.oneof(
    fc.anything().map((value) => () => value),
    fc.constantFrom<Recipe>(
      revoked,
      allThrowing,
      throwingGetters,
      unprintable,
      cyclic,
      endless,
      selfContaining,
      () => Symbol('thrown'),
      () => Object.create(null),
      () => () => 'a function',
      () => new Proxy([], { get: () => revoked() }),
      () => new (class extends Error {})('x'),
    ),
    fc.string().map((message) => () => new Error(message)),
    fc.constantFrom(400, 404, 409, 429, 503, '422', -1, Number.NaN).map((status) => () => ({ status })),
    fc.constantFrom('ECONNRESET', 'ENOTFOUND', 'POISON', 'RETRY_ABORT', 'WORK_DELAYED').map((code) => () => ({ code })),
  )
  return fc.letrec<{ node: Recipe; leaf: Recipe }>((tie) => ({
    leaf,
    node: fc.oneof(
      { depthSize: 'small' },
      tie('leaf'),
      fc.tuple(fc.string(), tie('node')).map(
        ([message, cause]) =>
          () =>
            new Error(message, { cause: cause() }),
      ),
      fc.array(tie('node'), { maxLength: 4 }).map((errors) => () => new AggregateError(errors.map((make) => make()))),
      fc
        .array(fc.tuple(fc.constantFrom(...WORDS), tie('node')), { maxLength: 5 })
        .map((entries) => () => Object.fromEntries(entries.map(([key, make]) => [key, make()]))),
    ),
  })).node
}
