import type { WorkerSettings } from '../../../ports/ledger.js'
import { present, same } from '../check.js'
import { clausesOn } from '../clause.js'
import { type LedgerBench, worker } from './bench.js'

export const workerClauses = clausesOn<LedgerBench>()({
  'ledger: stores the settings of a worker': {
    law: 'workers() has the settings that a worker sent last, whole, also values of Infinity; a worker that sends none has none.',
    hint: 'whether the settings are stored with the record that heartbeats carry, and replaced by the next.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      const settings: WorkerSettings = {
        leaseMs: 30_000,
        keepMs: { completed: 86_400_000, dead: 2_592_000_000 },
        types: {
          mail: { retry: { attempts: 3, base: 1000, factor: 2, max: 30_000, jitter: 0.5 }, runTimeoutMs: 5000 },
          endless: { retry: { attempts: Infinity, base: 0, factor: 1, max: Infinity, jitter: 1 } },
          'pdf "ü"': { retry: { attempts: Number.MAX_SAFE_INTEGER, base: 0, factor: 1, max: 0, jitter: 1 } },
        },
      }
      const known = async (id: string) => {
        const workers = await bench.inspect.workers()
        return present(
          workers.find((one) => one.id === id),
          `the worker ${id}`,
        ).settings
      }
      await ledger.extend([], time.ms(30), { ...worker('w-1'), settings })
      await ledger.extend([], time.ms(30), worker('w-2'))
      same(await known('w-1'), settings, 'the settings of an idle worker')
      same(await known('w-2'), undefined, 'the settings of a worker that sent none')
      const others: WorkerSettings = { leaseMs: 1000, keepMs: { completed: Infinity, dead: Infinity }, types: {} }
      await ledger.extend([], time.ms(30), { ...worker('w-1'), settings: others })
      same(await known('w-1'), others, 'the settings that it sent last')
    },
  },
  'ledger: a worker that leaves is no longer listed': {
    law: 'removeWorker(worker) removes the record of that worker immediately, and no other; a worker that comes back is listed again.',
    hint: 'whether the record is removed by its id, and written anew by the next heartbeat.',
    needs: ['inspect'],
    async run(bench) {
      const { ledger, time } = bench
      const known = async () => {
        const workers = await bench.inspect.workers()
        return workers.map(({ id }) => id).toSorted()
      }
      await ledger.extend([], time.ms(30), worker('w-1'))
      await ledger.extend([], time.ms(30), worker('w-2'))
      const leave = present(ledger.removeWorker, '`removeWorker` of the ledger')
      await leave('w-1')
      same(await known(), ['w-2'], 'the workers after one of them has left')
      await leave('w-1')
      await leave('w-3')
      same(await known(), ['w-2'], 'the workers after some have left that were not there')
      await ledger.extend([], time.ms(30), worker('w-1'))
      same(await known(), ['w-1', 'w-2'], 'the workers after one has come back')
    },
  },
})
