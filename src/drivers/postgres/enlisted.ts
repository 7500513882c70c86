import { MillraceError } from '../../core/error.js'
import { quoteLiteral } from './identifier.js'
import type { PgQuery } from './pg-library.js'

/**
 * The user's own transaction, reduced to what we need of it: one statement with text parameters, whose first column of the
 * first row is a text. So little can be had from every library.
 */
export interface EnlistedTransaction {
  /** `call` is a function with one text parameter: `"schema".enlist`. */
  callText(call: string, argument: string): Promise<string>
}

/** A client of `pg`, taken from a pool or connected by hand, on which `begin` has been run. */
export interface PgTransaction {
  query(config: PgQuery): Promise<{ readonly rows: unknown[] }>
}
/** The `sql` that `sql.begin` of postgres.js hands to its callback. */
export interface PostgresJsTransaction {
  unsafe(query: string, parameters?: never[]): PromiseLike<readonly object[]>
}
/** The `tx` of `db.transaction` of Drizzle, over any Postgres driver. */
export interface DrizzleTransaction {
  execute(query: string): PromiseLike<unknown>
}
/** The `trx` of `db.transaction().execute` of Kysely. */
export interface KyselyTransaction {
  readonly isTransaction: boolean
  executeQuery(query: never): Promise<{ readonly rows: unknown[] }>
}
/** The `tx` of `prisma.$transaction` of Prisma. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): Promise<unknown>
}

/** A transaction of the application, recognised by its shape: of pg, postgres.js, Drizzle, Kysely or Prisma. */
export type UserTransaction =
  | PgTransaction
  | PostgresJsTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | PrismaTransaction

/** What was given as a transaction is none that we know. */
class BadTransactionError extends MillraceError {
  constructor(why: string) {
    super(
      'BAD_TRANSACTION',
      `tx: ${why} Give the client of pg on which you ran BEGIN, the sql of postgres.js's sql.begin(), the tx of ` +
        "Drizzle's or Prisma's transaction, or Kysely's trx.",
    )
  }
}

/** Recognises the transaction of a library by its shape. */
export function enlisted(tx: unknown): EnlistedTransaction {
  if ((typeof tx !== 'object' || tx === null) && typeof tx !== 'function') {
    throw new BadTransactionError('it is no object of a library.')
  }
  const has = (name: string): boolean => typeof (tx as Record<string, unknown>)[name] === 'function'
  // Asked for by their own names first: several of them also have a `query`.
  if (has('$queryRawUnsafe')) return fromPrisma(tx as PrismaTransaction)
  if (has('executeQuery') && 'isTransaction' in tx) return fromKysely(tx as KyselyTransaction)
  if (has('unsafe')) return fromPostgresJs(tx as PostgresJsTransaction)
  if (has('execute') && has('select')) return fromDrizzle(tx as DrizzleTransaction)
  if (has('query')) return fromPg(tx as PgTransaction)
  throw new BadTransactionError('it has none of the methods that a transaction has.')
}

function fromPg(tx: PgTransaction): EnlistedTransaction {
  if ('totalCount' in tx && 'idleCount' in tx) {
    throw new BadTransactionError('it is a pool, whose statements go to any connection.')
  }
  return {
    async callText(call, argument) {
      if (await isOutside(tx)) throw new BadTransactionError('it is a client of pg on which no transaction is open.')
      const { rows } = await tx.query({ text: `select ${call}($1)`, values: [argument], rowMode: 'array' })
      return onlyText(rows)
    },
  }
}

/** Whether no transaction is open: recent versions of `pg` know. A `begin` that the caller has not awaited is waited for. */
async function isOutside(tx: PgTransaction): Promise<boolean> {
  const isIdle = () => (tx as { getTransactionStatus?: () => unknown }).getTransactionStatus?.() === 'I'
  if (!isIdle()) return false
  await tx.query({ text: 'select' })
  return isIdle()
}

function fromPostgresJs(tx: PostgresJsTransaction): EnlistedTransaction {
  if ('begin' in tx && !('savepoint' in tx)) {
    throw new BadTransactionError('it is the sql of postgres.js outside of a transaction.')
  }
  return { callText: async (call, argument) => onlyText(await tx.unsafe(`select ${call}($1)`, [argument as never])) }
}

function fromDrizzle(tx: DrizzleTransaction): EnlistedTransaction {
  if (typeof (tx as { readonly rollback?: unknown }).rollback !== 'function') {
    throw new BadTransactionError('it is the db of Drizzle outside of a transaction.')
  }
  return {
    async callText(call, argument) {
      // Parameters would need Drizzle's own `sql`; a plain text is taken as it is, and a quoted literal is as safe.
      const answer = await tx.execute(`select ${call}(${quoteLiteral(argument)})`)
      return onlyText(Array.isArray(answer) ? answer : (answer as { readonly rows: unknown[] }).rows)
    },
  }
}

function fromKysely(tx: KyselyTransaction): EnlistedTransaction {
  if (!tx.isTransaction) throw new BadTransactionError('it is the db of Kysely outside of a transaction.')
  return {
    async callText(call, argument) {
      const sql = `select ${call}($1)`
      const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
      const { rows } = await tx.executeQuery({
        sql,
        parameters: [argument],
        query,
        queryId: { queryId: 'millrace' },
      } as never)
      return onlyText(rows)
    },
  }
}

function fromPrisma(tx: PrismaTransaction): EnlistedTransaction {
  if (typeof (tx as { readonly $transaction?: unknown }).$transaction === 'function') {
    throw new BadTransactionError('it is the client of Prisma outside of a transaction.')
  }
  return {
    callText: async (call, argument) =>
      onlyText((await tx.$queryRawUnsafe(`select ${call}($1)`, argument)) as readonly unknown[]),
  }
}

/** The one value of the one row, whether the library gives rows as objects or as lists. */
function onlyText(rows: readonly unknown[]): string {
  const [row] = rows
  const [value] = typeof row === 'object' && row !== null ? Object.values(row) : []
  if (typeof value !== 'string') throw new BadTransactionError('it did not return the rows of a statement.')
  return value
}
