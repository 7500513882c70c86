import type { Migration } from '../../drivers/postgres/index.js'
import { ADD } from './sql/add.js'
import { CHECK_GATES } from './sql/check-gates.js'
import { CLAIM } from './sql/claim.js'
import { COMMIT } from './sql/commit.js'
import { END } from './sql/end.js'
import { ENLIST } from './sql/enlist.js'
import { EXTEND } from './sql/extend.js'
import { FOLD_SHARES } from './sql/groups.js'
import { HELPERS } from './sql/helpers.js'
import { INSIGHT } from './sql/inspect.js'
import { JOB } from './sql/job.js'
import { PLAIN } from './sql/plain.js'
import { READ } from './sql/read.js'
import { SCHEMA } from './sql/schema.js'

/**
 * The steps of the schema. A released step stays as it is. A later one only adds: programs of the version before go on
 * working while the fleet is updated, so a function that changes gets a new name beside the old one.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    minReader: 1,
    about: 'items, groups, gates, plain ports',
    sql: [SCHEMA, HELPERS, FOLD_SHARES, CHECK_GATES, CLAIM, EXTEND, COMMIT, ADD, END, ENLIST, READ, PLAIN].join('\n'),
  },
  { version: 2, minReader: 1, about: 'throughput, failures and stuck items, for people', sql: INSIGHT + JOB },
]
