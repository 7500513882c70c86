import { memoryBackend } from '../src/backends/memory/index.js'
import { ownedBy } from '../src/ports/native.js'
import { overPlainPorts } from '../src/ports/plain/index.js'
import { FakeClock } from '../src/testing/fake-clock.js'
const clock = new FakeClock()
const backend = memoryBackend({ clock })
const { incrementOnce, compareAndSet, getMany, setMany } = backend.store
const ports = { queue: backend.queue, pubsub: backend.pubsub, store: { ...backend.store, incrementOnce, compareAndSet, getMany, setMany } }
const plain = overPlainPorts(ports, [], { clock }).ledger
const o: any = ownedBy(backend, []); const native = o.open({ prefix: 'work:' })
const now = clock.now()
const env = (id: string) => ({ id, type: 't', groupId: 'g-' + id, input: 'null', queueAt: now, startAt: now, attempt: 1, priority: 0 })
const enq = (id: string, how: any = {}, more: any[] = []) => ({ guard: { by: 'absent', id }, effects: [{ do: 'openGroup', groupId: 'g-' + id, by: 1 }, { do: 'push', item: env(id), queue: 'default', delayMs: 0, ...how }, ...more] })
console.log(await plain.commit([enq('a'), enq('gate', { delayMs: Infinity, hold: { by: 'gate', key: 'k' } }, [{ do: 'openGate', key: 'k', holds: 'gate', members: ['a'], need: 1, of: 'success' }])] as any))
const K = ['state:a','state:gate','gate:k','gate-freed:k','watch:a']
for (const k of K) console.log(k, backend.store.get('work:' + k))
const { items } = await native.claim({ from: [{ queue: 'default', max: 2 }], leaseMs: 30000, worker: 'w', startNow: 1 })
console.log(items.map((i: any) => i.lease.id))
console.log(await native.commit([{ guard: { by: 'lease', lease: items[0].lease }, effects: [{ do: 'tellGate', key: 'k', member: 'a', ok: true }, { do: 'finish', id: 'a', ending: 'done', keepMs: 1e6, result: '1' }, { do: 'closeGroup', groupId: 'g-a', by: 1 }] }]))
for (const k of K) console.log(k, backend.store.get('work:' + k))
console.log(await native.read(['gate']))
console.log((await plain.claim({ from: [{ queue: 'default', max: 2 }], leaseMs: 30000, worker: 'w', startNow: 1 })))
