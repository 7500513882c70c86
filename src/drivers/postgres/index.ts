export { addressOption } from './address-option.js'
export { PostgresDriver, type PostgresDriverOptions } from './driver.js'
export {
  type DrizzleTransaction,
  type EnlistedTransaction,
  enlisted,
  type KyselyTransaction,
  type PgTransaction,
  type PostgresJsTransaction,
  type PrismaTransaction,
  type UserTransaction,
} from './enlisted.js'
export { isLocked, sqlStateOf } from './errors.js'
export { checkIdentifier, quoteIdentifier, quoteLiteral } from './identifier.js'
export { type Migration, migrate, SchemaVersionError } from './migrate.js'
export type { PgPoolLike } from './pg-library.js'
export { withSchema } from './sql-text.js'
export type { Queryable, Row, SqlValue, Statement } from './statement.js'
