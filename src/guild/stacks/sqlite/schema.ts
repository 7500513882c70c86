import type { SchemaPlan } from '../../../drivers/sqlite/schema.js'

/** The tables that every store has; those of books are made when a book is declared. */
export function stacksSchema(prefix: string): SchemaPlan {
  return {
    component: prefix,
    steps: [
      {
        version: 1,
        minReader: 1,
        sql: `
          -- Where each book is kept. Names are never flattened into table names: foo + bar_baz and foo_bar + baz would meet.
          create table ${prefix}_book (
            id integer primary key, owner text not null, name text not null, unique (owner, name)) strict;
          create table ${prefix}_index (
            id integer primary key, book integer not null references ${prefix}_book, fields text not null,
            unique (book, fields)) strict;
          -- Events that durable watchers have not had yet; seq is never used twice.
          create table ${prefix}_outbox (
            seq integer primary key autoincrement, book text not null, hops integer not null, event text not null) strict;
          create index ${prefix}_outbox_book on ${prefix}_outbox (book, seq);
          create table ${prefix}_watcher (
            name text primary key, owner text not null, book text not null, cursor integer not null,
            holder text, until real not null) strict;
          create table ${prefix}_writer (
            instance text primary key, fingerprint text not null, until real not null) strict;`,
      },
      {
        version: 2,
        // Triggers keep the columns up to date for every writer.
        minReader: 1,
        sql: `
          -- Fields whose keys have columns of their own in the table of the book.
          create table ${prefix}_column (
            id integer primary key, book integer not null references ${prefix}_book, field text not null,
            unique (book, field)) strict;
          -- 1: the index is over these columns; 0: over the document.
          alter table ${prefix}_index add column on_columns integer not null default 0;`,
      },
    ],
  }
}
