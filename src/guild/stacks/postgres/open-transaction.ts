import { type PostgresDriver, type Queryable, sqlStateOf } from '../../../drivers/postgres/index.js'
import { RetryableTransactionError } from '../errors.js'

/** Thrown into the driver to make it roll back; it goes no further. */
const ROLLBACK = Symbol('rollback')

/** A transaction that stays open until it is ended. */
export interface OpenTransaction extends Queryable {
  commit(): Promise<void>
  rollback(): Promise<void>
}

/**
 * Begins a transaction and keeps it open. The driver runs a function inside a transaction and repeats it where the server
 * undid it; here the function waits for its end, and is never repeated, because the code that ran in it was the user's.
 */
export async function openTransaction(driver: PostgresDriver, setup: string): Promise<OpenTransaction> {
  const opened = deferred<Queryable>()
  const ending = deferred<void>()
  let hasBegun = false
  const whole = driver.transaction(async (tx) => {
    if (hasBegun) throw new RetryableTransactionError(new Error('The transaction was undone while it was committed.'))
    hasBegun = true
    await tx.query({ name: '', text: setup })
    opened.resolve(tx)
    await ending.promise
  })
  whole.catch((error: unknown) => opened.reject(asConflict(error)))
  const tx = await opened.promise
  return {
    async query(statement) {
      try {
        return await tx.query(statement)
      } catch (error) {
        throw asConflict(error)
      }
    },
    async commit() {
      ending.resolve()
      try {
        await whole
      } catch (error) {
        throw asConflict(error)
      }
    },
    async rollback() {
      ending.reject(ROLLBACK)
      // A connection that is lost has rolled back by itself.
      await whole.catch(() => undefined)
    },
  }
}

/** Serialisation failure, deadlock, lock timeout: the same transaction may succeed when it runs again. */
function asConflict(error: unknown): unknown {
  return ['40001', '40P01', '55P03'].includes(sqlStateOf(error) ?? '') ? new RetryableTransactionError(error) : error
}

interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (reason: unknown) => void
}

function deferred<T>(): Deferred<T> {
  let [resolve, reject] = [(_: T): void => undefined, (_: unknown): void => undefined]
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Not every caller awaits it.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
