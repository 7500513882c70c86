import type { RedisConnection } from '../../drivers/redis/index.js'
import { keepWithMessage, LETTER_MARK, readWords, wordsOfRecord } from '../inlets/broker/letter-words.js'
import type { StreamLetter, StreamLetters } from '../inlets/broker/stream-letters.js'
import { AttemptHeader } from '../message/context.js'
import { Headers } from '../message/headers.js'
import type { FieldNames } from './redis-message.js'
import { script } from './scripts.js'

export interface RedisLettersOptions {
  readonly connection: RedisConnection
  readonly origin: object
  readonly stream: string
  readonly group: string
  readonly letters: string
  readonly names: FieldNames
}

const utf8 = new TextDecoder()
const EMPTY = new Uint8Array()

/** The dead letters of a stream, in a stream beside it. */
export function redisLetters(options: RedisLettersOptions): StreamLetters {
  const { connection, origin, stream, group, letters, names } = options
  const act = async (what: 'redrive' | 'discard', ids: readonly string[]) =>
    (await connection.run(script('letters'), stream, [group, '', letters, what, LETTER_MARK, ...ids])) as number
  return {
    async deadLetter(ctx, record) {
      if (keepWithMessage(ctx, record, origin, group)) return
      const client = await connection.ready()
      const place = { subject: record.subject, cursor: record.cursor }
      // Its attempts start over.
      const headers = new Headers(record.headers).without(AttemptHeader).entries()
      const fields: (string | Buffer)[] = [names.value, Buffer.from(record.value)]
      if (record.key !== null) fields.push(names.key, Buffer.from(record.key))
      for (const { key, value } of headers) fields.push(key, value)
      for (const [name, value] of wordsOfRecord(place, record, group)) fields.push(name, value)
      await connection.within('a dead letter', client, client.xadd!(letters, '*', ...fields))
    },
    async list({ after = '', limit = 100 } = {}) {
      const client = await connection.ready()
      const from = after === '' ? '-' : `(${after}`
      const asked = client.xrangeBuffer!(letters, from, '+', 'COUNT', limit)
      const rows = (await connection.within('the dead letters', client, asked)) as [Buffer, Buffer[]][]
      return rows.map(([id, words]) => letterOf(id.toString(), words, names))
    },
    async count() {
      const client = await connection.ready()
      return (await connection.within('the dead letters', client, client.xlen!(letters))) as number
    },
    redrive: async (ids) => (ids.length === 0 ? 0 : act('redrive', ids)),
    discard: async (ids) => (ids.length === 0 ? 0 : act('discard', ids)),
  }
}

function letterOf(id: string, words: readonly Uint8Array[], names: FieldNames): StreamLetter {
  const fields = new Map<string, Uint8Array>()
  const headers: [string, string][] = []
  for (let i = 0; i + 1 < words.length; i += 2) {
    const name = utf8.decode(words[i])
    fields.set(name, words[i + 1]!)
    if (name !== names.key && name !== names.value && !name.startsWith(LETTER_MARK))
      headers.push([name, utf8.decode(words[i + 1])])
  }
  const textOf = (name: string) => (fields.has(name) ? utf8.decode(fields.get(name)) : undefined)
  return Object.freeze({
    id,
    ...readWords(textOf),
    atMs: Number(id.slice(0, id.indexOf('-'))),
    key: fields.get(names.key) ?? null,
    value: fields.get(names.value) ?? EMPTY,
    headers: new Headers(headers),
  })
}
