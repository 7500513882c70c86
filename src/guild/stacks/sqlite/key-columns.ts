import { fieldPath } from '../documents/names.js'
import { type KeyColumns, keyFrom } from './expression.js'

// Keys of indexed fields have their own columns beside the document. An index over the document itself is rewritten with
// every write of the document, since SQLite cannot know that a field in it has not changed; one over columns is not touched
// unless a statement names them.

/** Adds a document (its id, its revision, its text) with its keys. */
export function insertSql(table: string, columns: KeyColumns): string {
  const names = ['id', 'rev', 'doc', ...columns.values()].join(', ')
  const keys = [...columns.keys()].map((field) => `, ${keyFrom('doc', fieldPath(field))}`).join('')
  return `insert into ${table} (${names}) select id, rev, doc${keys} from (select ? as id, ? as rev, ? as doc)`
}

/** Fills columns that were just added. */
export function fillSql(table: string, columns: KeyColumns): string {
  return `update ${table} set ${assignments(columns)}`
}

/**
 * Keeps the columns in step with the documents. The table does that itself, not the writer: a process that was started
 * before a column was added does not know of it. Nothing is written while the keys stay as they are.
 */
export function triggersSql(table: string, columns: KeyColumns): string {
  const differs = (row: 'old' | 'new'): string =>
    [...columns].map(([field, name]) => `${row}.${name} is not ${keyFrom('new.doc', fieldPath(field))}`).join(' or ')
  const follow = `begin update ${table} set ${assignments(columns)} where id = new.id; end`
  return `
    drop trigger if exists ${table}_inserted;
    create trigger ${table}_inserted after insert on ${table} when ${differs('new')} ${follow};
    drop trigger if exists ${table}_updated;
    create trigger ${table}_updated after update of doc on ${table} when ${differs('old')} ${follow};`
}

function assignments(columns: KeyColumns): string {
  return [...columns].map(([field, name]) => `${name} = ${keyFrom('doc', fieldPath(field))}`).join(', ')
}
