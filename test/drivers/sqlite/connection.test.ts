import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/core/time/clock.js'
import { SqliteConnection, type SqliteConnectionOptions } from '../../../src/drivers/sqlite/connection.js'
import type { SqliteDatabase } from '../../../src/drivers/sqlite/database.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { temporaryFile } from './temporary.js'

const schema = {
  component: 'notes',
  steps: [
    { version: 1, minReader: 1, sql: 'create table note (id integer primary key, text text not null unique) strict' },
  ],
}

const statements = (db: SqliteDatabase) => ({
  add: db.prepare<[string]>('insert into note (text) values (?)'),
  all: db.prepare<[], readonly [string]>('select text from note order by id'),
  patience: db.prepare<[], readonly [number]>('pragma busy_timeout'),
})
type Notes = ReturnType<typeof statements>

const opened: SqliteConnection<Notes>[] = []
afterEach(async () => {
  for (const connection of opened.splice(0)) await connection.close()
})

function connect(over: Partial<SqliteConnectionOptions<Notes>> = {}): SqliteConnection<Notes> {
  const connection = new SqliteConnection({ file: temporaryFile(), clock: systemClock, schema, statements, ...over })
  opened.push(connection)
  return connection
}

const texts = (notes: SqliteConnection<Notes>) => notes.read((sql) => sql.all.all().map(([text]) => text))

describe('the writes of one turn', () => {
  it('are one transaction, whichever promise asked for them', async () => {
    const begun: string[] = []
    const notes = connect({ onStatement: (sql) => void (/^(?:begin|commit)/i.test(sql) && begun.push(sql)) })
    await notes.write((sql) => sql.add.run('zero'))
    begun.length = 0

    const later = async (text: string, hops: number) => {
      for (let i = 0; i < hops; i += 1) await Promise.resolve()
      return notes.write((sql) => sql.add.run(text))
    }
    await Promise.all([later('a', 0), later('b', 1), later('c', 7), later('d', 30)])

    expect(begun).toEqual(['begin immediate', 'commit'])
    expect(await texts(notes)).toEqual(['zero', 'a', 'b', 'c', 'd'])
  })

  it('are written without the one that fails, and only its caller gets the error', async () => {
    const notes = connect()
    await notes.write((sql) => sql.add.run('a'))

    const outcomes = await Promise.allSettled(['b', 'a', 'c'].map((text) => notes.write((sql) => sql.add.run(text))))

    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await texts(notes)).toEqual(['a', 'b', 'c'])
  })

  it('are seen by a read that was asked for after them', async () => {
    const notes = connect()

    void notes.write((sql) => sql.add.run('a'))

    expect(await texts(notes)).toEqual(['a'])
  })

  it('are written before the connection closes, and none after', async () => {
    const file = temporaryFile()
    const notes = connect({ file })
    const written = notes.write((sql) => sql.add.run('a'))

    await notes.close()

    await written
    await expect(notes.write((sql) => sql.add.run('b'))).rejects.toMatchObject({ code: 'BACKEND_CLOSED' })
    await expect(texts(notes)).rejects.toMatchObject({ code: 'BACKEND_CLOSED' })
    expect(await texts(connect({ file }))).toEqual(['a'])
  })
})

describe('a database that another connection is writing to', () => {
  it('is waited for without blocking the event loop', async () => {
    const file = temporaryFile()
    const clock = new FakeClock()
    let tries = 0
    const notes = connect({ file, clock, onStatement: (sql) => void (/^begin immediate/i.test(sql) && tries++) })
    await notes.write((sql) => sql.add.run('first'))
    // A try takes no time: SQLite itself does not wait.
    expect(await notes.read((sql) => sql.patience.get())).toEqual([0])
    const other = new Database(file)
    other.exec('begin immediate')
    other.exec("insert into note (text) values ('theirs')")
    tries = 0

    const written = notes.write((sql) => sql.add.run('ours'))
    await clock.advance(1_000)
    // Every wait is one on the clock, of at most 21 ms.
    expect(tries).toBeGreaterThan(1_000 / 22)
    other.exec('commit')
    other.close()
    await clock.advance(25)
    await written

    expect(await texts(notes)).toEqual(['first', 'theirs', 'ours'])
  })

  it('is reported as busy after half a minute, and nothing was written', async () => {
    const file = temporaryFile()
    const clock = new FakeClock()
    const notes = connect({ file, clock, random: () => 0.99 })
    await notes.write((sql) => sql.add.run('first'))
    const other = new Database(file)
    other.exec('begin immediate')

    const written = notes.write((sql) => sql.add.run('ours'))
    const outcome = expect(written).rejects.toMatchObject({ code: 'SQLITE_BUSY', facts: { file } })
    await clock.settle()
    while (clock.pending > 0) await clock.advance(31_000)
    await outcome

    other.exec('rollback')
    other.close()
    expect(await texts(notes)).toEqual(['first'])
  })
})

describe('a change by another connection', () => {
  it('calls the listener; our own does not', async () => {
    const file = temporaryFile()
    const notes = connect({ file })
    const others = connect({ file })
    await notes.write((sql) => sql.add.run('a'))
    await others.write((sql) => sql.add.run('b'))
    let received = 0
    const leave = notes.onChange(() => {
      received += 1
    })
    const first = new Promise<void>((resolve) => notes.onChange(resolve))

    await others.write((sql) => sql.add.run('c'))
    await first
    const before = received
    await notes.write((sql) => sql.add.run('d'))
    for (let i = 0; i < 5; i += 1) await nextTurn()

    expect(before).toBe(1)
    expect(received).toBe(1)
    leave()
  })

  it('is found by polling where the file system reports nothing', async () => {
    const file = temporaryFile()
    const clock = new FakeClock()
    const notes = connect({ file, clock })
    await notes.write((sql) => sql.add.run('a'))
    let received = 0
    notes.onChange(() => {
      received += 1
    })
    const other = new Database(file)
    other.exec("insert into note (text) values ('b')")
    // Without a turn of the event loop in between, no event of the file system can have come.
    const moved = clock.advance(300)
    await moved
    other.close()

    expect(received).toBe(1)
  })
})
