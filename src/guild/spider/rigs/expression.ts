/** What an expression reads. */
export interface Expression {
  readonly root: 'writ' | 'vars' | 'yields'
  readonly path: readonly string[]
}

/** A given in its compiled form: a value, one expression (which keeps its type), or text with expressions in it. */
export type CompiledGiven =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'expression'; readonly expression: Expression }
  | { readonly kind: 'text'; readonly parts: readonly (string | Expression)[] }

/** The inputs of an engine, compiled: plain values, and those that are read from other engines. */
export type CompiledGivens = Readonly<Record<string, CompiledGiven>>

/** A condition: the yields of an engine at a path, perhaps negated. */
export interface CompiledWhen {
  readonly isNegated: boolean
  readonly expression: Expression
}

/** A text that is not in the language. */
class ExpressionSyntaxError extends Error {
  override readonly name = 'ExpressionSyntaxError'
}

const SEGMENT = /^[A-Za-z0-9_-]+$/

/** Reads a template's givens. Only top-level strings are read; `\${` is a literal `${`. */
export function compileGivens(givens: Readonly<Record<string, unknown>> = {}): CompiledGivens {
  return Object.fromEntries(Object.entries(givens).map(([name, value]) => [name, compileGiven(value)]))
}

function compileGiven(value: unknown): CompiledGiven {
  if (typeof value !== 'string') return { kind: 'value', value }
  const parts: (string | Expression)[] = []
  let text = ''
  for (let i = 0; i < value.length; ) {
    if (value.startsWith('\\${', i)) {
      text += '${'
      i += 3
    } else if (value.startsWith('${', i)) {
      const end = value.indexOf('}', i)
      if (end < 0) throw new ExpressionSyntaxError(`"${value}" has an expression without an end`)
      if (text !== '') parts.push(text)
      text = ''
      parts.push(parseExpression(value.slice(i + 2, end)))
      i = end + 1
    } else {
      text += value[i]
      i += 1
    }
  }
  if (text !== '') parts.push(text)
  const [only] = parts
  if (parts.length === 1 && typeof only === 'object') return { kind: 'expression', expression: only }
  if (parts.every((part) => typeof part === 'string')) return { kind: 'value', value: parts.join('') }
  return { kind: 'text', parts }
}

function parseExpression(source: string): Expression {
  const [root, ...path] = source.split('.')
  if (root !== 'writ' && root !== 'vars' && root !== 'yields')
    throw new ExpressionSyntaxError(`"\${${source}}" must begin with writ, vars or yields`)
  if (!path.every((segment) => SEGMENT.test(segment)))
    throw new ExpressionSyntaxError(`"\${${source}}" has an empty or odd part in its path`)
  if (root === 'vars' && path.length === 0) throw new ExpressionSyntaxError(`"\${${source}}" must name a variable`)
  if (root === 'yields' && path.length < 2)
    throw new ExpressionSyntaxError(`"\${${source}}" must name an engine and a path in what it yields`)
  return { root, path }
}

/** Reads a condition. */
export function compileWhen(when: string): CompiledWhen {
  const match = typeof when === 'string' ? /^(!?)\$\{([^}]*)\}$/.exec(when.trim()) : null
  if (match === null)
    throw new ExpressionSyntaxError(
      `when ${JSON.stringify(when)} must be \${yields.<engine>.<path>}, with an optional !`,
    )
  const expression = parseExpression(match[2] ?? '')
  if (expression.root !== 'yields') throw new ExpressionSyntaxError(`when "${when}" must read yields`)
  return { isNegated: match[1] === '!', expression }
}

/** The engines whose yields are read. */
export function enginesNamed(givens: CompiledGivens, when: CompiledWhen | undefined): string[] {
  const expressions = Object.values(givens).flatMap((given) =>
    given.kind === 'expression'
      ? [given.expression]
      : given.kind === 'text'
        ? given.parts.filter((part) => typeof part === 'object')
        : [],
  )
  if (when !== undefined) expressions.push(when.expression)
  return expressions.flatMap(({ root, path: [engine] }) => (root === 'yields' && engine !== undefined ? [engine] : []))
}

/** What expressions see when a rig is spawned. */
export interface SpawnValues {
  readonly writ: unknown
  readonly vars: unknown
}

/** Fills in what is known at spawn, once: what came from the writ is a value from now on, whatever it looks like. */
export function resolveAtSpawn(givens: CompiledGivens, values: SpawnValues): CompiledGivens {
  const resolved: [string, CompiledGiven][] = []
  for (const [name, given] of Object.entries(givens)) {
    if (given.kind === 'expression' && given.expression.root !== 'yields') {
      const value = valueAt(values[given.expression.root], given.expression.path)
      if (value !== undefined) resolved.push([name, { kind: 'value', value }])
    } else if (given.kind === 'text') {
      const parts = given.parts.map((part) =>
        typeof part === 'string' || part.root === 'yields' ? part : textOf(valueAt(values[part.root], part.path)),
      )
      const isText = parts.every((part) => typeof part === 'string')
      resolved.push([name, isText ? { kind: 'value', value: parts.join('') } : { kind: 'text', parts }])
    } else resolved.push([name, given])
  }
  return Object.fromEntries(resolved)
}

/** The givens of a run. */
export function resolveAtRun(
  givens: CompiledGivens,
  yields: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const resolved: Record<string, unknown> = {}
  for (const [name, given] of Object.entries(givens)) {
    const value = runValue(given, yields)
    if (value !== undefined) resolved[name] = value
  }
  return resolved
}

function runValue(given: CompiledGiven, yields: Readonly<Record<string, unknown>>): unknown {
  switch (given.kind) {
    case 'value':
      return given.value
    case 'expression':
      return valueAt(yields, given.expression.path)
    case 'text':
      return given.parts.map((part) => (typeof part === 'string' ? part : textOf(valueAt(yields, part.path)))).join('')
  }
}

/** Whether a condition holds. An engine that was skipped yields nothing, which is false. */
export function isMet({ isNegated, expression }: CompiledWhen, yields: Readonly<Record<string, unknown>>): boolean {
  return Boolean(valueAt(yields, expression.path)) !== isNegated
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  let value = root
  for (const segment of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[segment]
  }
  return value
}

function textOf(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
