import { memoryQueue } from '../../../src/backends/memory/index.js'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import type { Clock } from '../../../src/core/time/clock.js'
import type { Ports } from '../../../src/ports/ports.js'
import type { LedgerUnderTest } from '../../../src/testing/conformance/ledger/under-test.js'
import { mortal } from '../../../src/testing/conformance/mortal.js'
import { type Powers, portsWith, queueWith } from './ports.js'

/** Adapters over the same ports in memory, as several processes would have them. */
export function openPlain(
  powers: Powers,
  clock: Clock,
  lift: (ports: Ports) => Ports = (ports) => ports,
): LedgerUnderTest {
  const ports = lift(portsWith(powers, clock))
  const second = queueWith(memoryQueue({ clock }), powers)
  const over = (these: Ports, at: Clock) => overPlainPorts(these, [second], { clock: at }).ledger
  return {
    ledger: over(ports, clock),
    queue: 'default',
    other: 'q1',
    again: () => over(ports, clock),
    pushRaw: (body) => ports.queue.push(body),
    mortal: (fate) => {
      const dying = mortal(ports, clock, fate)
      return { ledger: over(dying.ports, dying.clock), hasMet: dying.hasMet, death: dying.death }
    },
  }
}

/** What plain ports do not have, and what a ledger over them therefore cannot offer. */
export const without = [
  'native ledger',
  'lapses',
  'rooms',
  'inspect',
  'born leased',
  'holds',
  'own inboxes',
  'size limit',
] as const

export const waived = {
  'ledger: a redriven item is pending again, from its first attempt':
    'The input of an ended item is not kept: redrive it from the dead-letter queue.',
  'ledger: a redriven item opens its group again':
    'The input of an ended item is not kept: redrive it from the dead-letter queue.',
} as const

const COUNTS =
  'Without incrementOnce a marker and its count are two calls: a process that dies in between leaves the count unmoved.'

/** Without `incrementOnce`, what looks like one step is two. */
export const inTwoSteps = {
  ...waived,
  'ledger: one id enqueued by two processes concurrently is one item':
    'Without incrementOnce, looking for an id and writing it are two steps.',
  'ledger: a crash during an enqueue loses and doubles nothing': COUNTS,
  'ledger: a crash during a fan-out loses and doubles nothing': COUNTS,
  'ledger: a crash while a gate is freed loses and doubles nothing': COUNTS,
  'ledger: a crash during a dead-lettering loses and doubles nothing': COUNTS,
} as const
