import type { Store } from '../../ports/ports.js'
import { holds, same } from './check.js'
import { clausesOn } from './clause.js'
import { HOSTILE_TEXTS } from './hostile-texts.js'
import type { TestTime } from './time.js'

/** What a clause on a store gets: an empty store, and its time. */
export interface StoreBench {
  readonly store: Store
  readonly time: TestTime
}

const DAYS_OF_TICKS = 172_800

/** The obligations of `Store`. */
export const storeClauses = clausesOn<StoreBench>()({
  'store: an absent key reads undefined': {
    law: '`get` of a key that was never set is undefined; an empty value is a value.',
    hint: 'what the store returns for a miss: null, an empty string and undefined differ.',
    async run({ store }) {
      same(await store.get('absent'), undefined, 'an absent key')
      await store.set('empty', '')
      same(await store.get('empty'), '', 'a key set to the empty string')
      same(await store.setIfNotExists('empty', 'x'), false, 'setIfNotExists on the empty string')
    },
  },
  'store: an expired key reads undefined': {
    law: 'An entry with a ttl is gone after it, and not before.',
    hint: 'whether expiry is stored with the value and compared with the time of the backend.',
    async run({ store, time }) {
      await store.set('k', 'v', time.ms(4))
      await time.pass(time.ms(2))
      same(await store.get('k'), 'v', 'the key before its end')
      await time.pass(time.ms(3))
      same(await store.get('k'), undefined, 'the key after its end')
    },
  },
  'store: a key expires exactly at its end': {
    law: 'An entry is expired when its end is not after now.',
    hint: 'the comparison of the expiry: expired means expires <= now.',
    needs: ['exact time'],
    async run({ store, time }) {
      await store.set('k', 'v', 100)
      await time.pass(99)
      same(await store.get('k'), 'v', 'the key one millisecond before its end')
      await time.pass(1)
      same(await store.get('k'), undefined, 'the key at its end')
    },
  },
  'store: a ttl of 0 or none means forever': {
    law: 'A `ttl` of undefined or 0 is no expiry.',
    hint: 'whether 0 is taken for "expires now".',
    async run({ store, time }) {
      await store.set('a', '1')
      await store.set('b', '2', 0)
      await store.setIfNotExists('c', '3', 0)
      await time.pass(time.exact ? time.ms(DAYS_OF_TICKS) : time.ms(2))
      same([await store.get('a'), await store.get('b'), await store.get('c')], ['1', '2', '3'], 'the three keys')
    },
  },
  'store: set replaces value and expiry': {
    law: '`set` gives the key a new value and a new expiry, or none.',
    hint: 'whether an older expiry survives a set without a ttl.',
    async run({ store, time }) {
      await store.set('a', '1', time.ms(2))
      await store.set('a', '2')
      await store.set('b', '1')
      await store.set('b', '2', time.ms(2))
      same([await store.get('a'), await store.get('b')], ['2', '2'], 'the values after the second set')
      await time.pass(time.ms(3))
      same(await store.get('a'), '2', 'a key whose second set had no ttl')
      same(await store.get('b'), undefined, 'a key whose second set had a ttl')
    },
  },
  'store: setIfNotExists changes nothing when a value exists': {
    law: 'It answers true and sets an absent key; it answers false and leaves value and expiry otherwise.',
    hint: 'whether a refused call still writes the value or the ttl.',
    async run({ store, time }) {
      same(await store.setIfNotExists('k', '1'), true, 'the first caller')
      same(await store.setIfNotExists('k', '2', time.ms(1)), false, 'the second caller')
      same(await store.get('k'), '1', 'the value')
      await time.pass(time.ms(2))
      same(await store.get('k'), '1', 'the value after the ttl of the refused call')
    },
  },
  'store: an expired slot counts as absent': {
    law: '`setIfNotExists` on an expired key answers true, with its own expiry.',
    hint: 'whether an expired entry that no call has read yet still counts.',
    async run({ store, time }) {
      same(await store.setIfNotExists('k', '1', time.ms(2)), true, 'the first caller')
      await time.pass(time.ms(3))
      same(await store.setIfNotExists('k', '2', time.ms(2)), true, 'a caller after the expiry')
      same(await store.get('k'), '2', 'the value')
      await time.pass(time.ms(3))
      same(await store.get('k'), undefined, 'the value after its own expiry')
    },
  },
  'store: setIfNotExists is won by exactly one': {
    law: 'Of any set of concurrent callers exactly one gets true, and the value read back is the one of the winner.',
    hint: 'whether it is one atomic operation, and whether it is repeated blindly after a lost reply.',
    async run({ store }) {
      const tokens = Array.from({ length: 32 }, (_, i) => `token-${i}`)
      const won = await Promise.all(tokens.map(async (token) => store.setIfNotExists('claim', token)))
      same(won.filter(Boolean).length, 1, 'callers that won')
      same(await store.get('claim'), tokens[won.indexOf(true)], 'the token read back')
    },
  },
  'store: increment counts from 0 and stores decimal text': {
    law: 'Absent counts as 0; the new value is returned and stored as decimal text; it may go below 0.',
    hint: 'the type that increment stores, and what it does with an absent key.',
    needs: ['increment'],
    async run({ store }) {
      const by = async (n: number) => store.increment?.('n', n)
      same([await by(1), await by(1), await by(-1), await by(-5), await by(0)], [1, 2, 1, -4, -4], 'the answers')
      same(await store.get('n'), '-4', 'the text that get reads')
      await store.set('n', '41')
      same(await by(1), 42, 'an increment of a value that was set as text')
    },
  },
  'store: concurrent increments are all counted': {
    law: '`increment` is atomic: no update is lost, and no two callers get the same answer.',
    hint: 'whether it is a read followed by a write.',
    needs: ['increment'],
    async run({ store }) {
      const answers = await Promise.all(Array.from({ length: 32 }, async () => (await store.increment?.('n', 1)) ?? -1))
      same(
        answers.toSorted((a, b) => a - b),
        Array.from({ length: 32 }, (_, i) => i + 1),
        'the answers, sorted',
      )
      same(await store.get('n'), '32', 'the sum')
    },
  },
  'store: increment refreshes the expiry only when given one': {
    law: 'A ttl moves the end to now + ttl; without one the end stays as it was. An expired counter starts again at 0.',
    hint: 'whether an increment without a ttl drops or keeps the expiry.',
    needs: ['increment'],
    async run({ store, time }) {
      await store.increment?.('kept', 1, time.ms(4))
      await store.increment?.('moved', 1, time.ms(4))
      await time.pass(time.ms(2))
      await store.increment?.('kept', 1)
      await store.increment?.('moved', 1, time.ms(4))
      await time.pass(time.ms(3))
      same(await store.get('kept'), undefined, 'a counter whose second increment had no ttl')
      same(await store.get('moved'), '2', 'a counter whose second increment had one')
      same(await store.increment?.('kept', 1), 1, 'an increment of the expired counter')
    },
  },
  'store: delete removes the key': {
    law: 'A deleted key reads undefined and may be set again; deleting an absent key is harmless.',
    hint: 'whether delete removes value and expiry.',
    needs: ['delete'],
    async run({ store, time }) {
      await store.set('k', '1', time.ms(2))
      await store.delete?.('k')
      await store.delete?.('k')
      same(await store.get('k'), undefined, 'the deleted key')
      same(await store.setIfNotExists('k', '2'), true, 'setIfNotExists on the deleted key')
      await time.pass(time.ms(3))
      same(await store.get('k'), '2', 'the new value, after the expiry of the deleted one')
    },
  },
  'store: incrementOnce counts once for each marker': {
    law: 'If the marker is absent, set it and add; otherwise change nothing. Both in one atomic step.',
    hint: 'whether marker and counter are written by one operation.',
    needs: ['incrementOnce'],
    async run({ store }) {
      same(await store.incrementOnce?.('n', 'm1', 2), { value: 2, applied: true }, 'the first call')
      same(await store.incrementOnce?.('n', 'm1', 2), { value: 2, applied: false }, 'the same call again')
      same(await store.incrementOnce?.('n', 'm2', -5), { value: -3, applied: true }, 'a call with another marker')
      const many = await Promise.all(Array.from({ length: 16 }, async () => store.incrementOnce?.('c', 'once', 1)))
      same(many.filter((answer) => answer?.applied).length, 1, 'concurrent calls with one marker that were applied')
      same(await store.get('c'), '1', 'the counter after them')
      holds((await store.get('m1')) !== undefined, 'the marker is a key of the store')
    },
  },
  'store: compareAndSet writes only over what was expected': {
    law: 'If the value is `expected` (undefined: absent), make it `next`; otherwise change nothing.',
    hint: 'whether comparing and writing are one operation, and whether an expired value counts as absent.',
    needs: ['compareAndSet'],
    async run({ store, time }) {
      same(await store.compareAndSet?.('k', 'x', '1'), false, 'expecting a value where none is')
      same(await store.compareAndSet?.('k', undefined, '1', time.ms(2)), true, 'expecting none where none is')
      same(await store.compareAndSet?.('k', undefined, '2'), false, 'expecting none where a value is')
      same(await store.get('k'), '1', 'the value')
      await time.pass(time.ms(3))
      same(await store.compareAndSet?.('k', undefined, '3'), true, 'expecting none where a value expired')
      const won = await Promise.all(
        Array.from({ length: 16 }, async (_, i) => store.compareAndSet?.('k', '3', `w${i}`)),
      )
      same(won.filter(Boolean).length, 1, 'concurrent callers that won')
    },
  },
  'store: getMany and setMany are many gets and sets': {
    law: '`getMany` answers in the order of its keys, undefined for absent ones; `setMany` sets each with its own ttl.',
    hint: 'whether the answers align with the keys, and whether each entry keeps its own expiry.',
    needs: ['getMany', 'setMany'],
    async run({ store, time }) {
      await store.setMany?.([])
      same(await store.getMany?.([]), [], 'no keys')
      await store.setMany?.([
        { key: 'a', value: '1' },
        { key: 'b', value: '2', ttl: time.ms(2) },
      ])
      same(
        await store.getMany?.(['b', 'none', 'a', 'b']),
        ['2', undefined, '1', '2'],
        'values in the order of the keys',
      )
      await time.pass(time.ms(3))
      same(await store.getMany?.(['a', 'b']), ['1', undefined], 'values after the ttl of one')
    },
  },
  'store: keeps any key and any value apart and unchanged': {
    law: 'Keys and values are opaque text: quotes, patterns, scripts and lengths change nothing, and no two keys meet.',
    hint: 'how keys are quoted, prefixed, folded or cut.',
    async run({ store }) {
      const keys = [...HOSTILE_TEXTS, 'it', 'IT', 'a:b', 'a:b:c:', '*']
      for (const [i, key] of keys.entries()) await store.set(key, `${i}:${key}`)
      for (const [i, key] of keys.entries())
        same(await store.get(key), `${i}:${key}`, `the value of key ${JSON.stringify(key)}`)
      await store.set('long', 'y'.repeat(100_000))
      same((await store.get('long'))?.length, 100_000, 'the length of a long value')
    },
  },
  'store: its methods work detached': {
    law: 'A port is called without `this`, and { ...store } is a store too: every method is an own enumerable function.',
    hint: 'whether the factory returns a class instance or a method that reads `this`.',
    async run({ store }) {
      const { get, set, setIfNotExists } = { ...store }
      for (const [name, method] of Object.entries({ get, set, setIfNotExists }))
        holds(typeof method === 'function', `${name} survives an object spread`)
      await set('k', 'v')
      same(await get('k'), 'v', 'the value read by a detached get')
      same(await setIfNotExists('k', 'w'), false, 'the answer of a detached setIfNotExists')
    },
  },
})
