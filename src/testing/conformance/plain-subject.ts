import { overPlainPorts } from '../../backends/plain/over-plain-ports.js'
import type { Clock } from '../../core/time/clock.js'
import type { Ports, Queue } from '../../ports/ports.js'
import type { LedgerUnderTest } from './ledger/under-test.js'
import { mortal } from './mortal.js'

/**
 * A ledger over three plain ports, as the ledger suite needs it: with a second process on the same ports, and with processes
 * that die at any call. `second` is a further queue, where the ports have one.
 */
export function overPorts(ports: Ports, clock: Clock, second?: Queue): LedgerUnderTest {
  const open = (over: Ports, own: Clock, also: Queue | undefined) =>
    overPlainPorts(over, also === undefined ? [] : [also], { clock: own })
  const { ledger, names } = open(ports, clock, second)
  const other = second === undefined ? undefined : names.get(second)
  return {
    ledger,
    queue: names.get(ports.queue) ?? 'default',
    ...(other === undefined ? {} : { other }),
    again: () => open(ports, clock, second).ledger,
    pushRaw: (body) => ports.queue.push(body),
    mortal: (fate) => {
      const doomed = mortal(ports, clock, fate)
      return { ledger: open(doomed.ports, doomed.clock, undefined).ledger, hasMet: doomed.hasMet, death: doomed.death }
    },
  }
}
