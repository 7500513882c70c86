import type { Migration } from '../../../drivers/postgres/index.js'
import { KEY_CHARACTERS } from './key.js'

/** The tables that every store has; those of books are made when a book is declared. */
export const stacksMigrations: readonly Migration[] = [
  {
    version: 1,
    minReader: 1,
    about: 'books, the outbox and its watchers',
    sql: `
-- Where each book is kept. Names are never flattened into table names: foo + bar_baz and foo_bar + baz would meet.
create table {schema}.stacks_book (
  id int generated always as identity primary key, owner text not null, name text not null, unique (owner, name));
create table {schema}.stacks_index (
  id int generated always as identity primary key, book int not null references {schema}.stacks_book, fields text not null,
  unique (book, fields));

-- Events that durable watchers have not had yet. seq rises in commit order: see stacks_append.
create table {schema}.stacks_outbox (
  seq bigint generated always as identity primary key, book text not null, hops int not null, event text not null);
create index stacks_outbox_book on {schema}.stacks_outbox (book, seq);
create table {schema}.stacks_watcher (
  name text primary key, owner text not null, book text not null, cursor bigint not null,
  holder text, until timestamptz not null default '-infinity');
create table {schema}.stacks_writer (
  instance text primary key, fingerprint text not null, until timestamptz not null);

-- A field as one text that sorts, as bytes, in our order of values: null for null and absent, n and the ordered bits of a
-- number, s and the beginning of a text, t and u for false and true, v for everything else. One expression, so that the
-- planner puts it into queries and indexes alike.
create function {schema}.stacks_key(v jsonb) returns text language sql immutable parallel safe as {body}
  select case jsonb_typeof(v)
    when 'string' then 's' || left(v #>> '{}', ${KEY_CHARACTERS})
    when 'number' then case when v::float8 < 0
      then 'n' || translate(encode(float8send(v::float8), 'hex'), '0123456789abcdef', 'fedcba9876543210')
      else 'n' || translate(left(encode(float8send(v::float8), 'hex'), 1), '01234567', '89abcdef')
               || substr(encode(float8send(v::float8), 'hex'), 2) end
    when 'boolean' then case when v::boolean then 'u' else 't' end
    when 'object' then 'v' when 'array' then 'v' end
{body};

-- The whole of a text; null for everything else.
create function {schema}.stacks_text(v jsonb) returns text language sql immutable parallel safe as {body}
  select case when jsonb_typeof(v) = 'string' then v #>> '{}' end
{body};

-- Keeps events of watched books, last thing before the commit, and returns the place of the last one. The lock is held until
-- the commit is done, so places are given in commit order and no process reads past one that is not there yet.
create function {schema}.stacks_append(books text[], hop_count int, events text[], channel text) returns bigint
language plpgsql as {body}
begin
  if not exists (select 1 from {schema}.stacks_watcher w where w.owner || '/' || w.book = any (books)) then
    return null;
  end if;
  -- Its holder is committing and waits for nothing: this wait ends.
  perform set_config('lock_timeout', '30s', true);
  perform pg_advisory_xact_lock(hashtextextended(channel, 1));
  insert into {schema}.stacks_outbox (book, hops, event)
    select e.book, hop_count, e.event from unnest(books, events) with ordinality as e (book, event, place)
    where exists (select 1 from {schema}.stacks_watcher w where w.owner || '/' || w.book = e.book) order by e.place;
  perform pg_notify(channel, '');
  return currval(pg_get_serial_sequence('{schema_text}.stacks_outbox', 'seq'));
end
{body};`,
  },
]
