import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PoisonError } from '../../src/core/failure/failure-errors.js'
import { fingerprint, normaliseMessage, ownFrame } from '../../src/core/failure/fingerprint.js'
import { thrown } from './hostile.js'

const failing = (message: string, name = 'Error', frames = 'at charge (/app/src/billing/charge.js:10:5)') =>
  Object.assign(new Error(message), { name, stack: `${name}: ${message}\n    ${frames}` })

describe('the same failure again', () => {
  it('has the same fingerprint, whichever item it happened to', () => {
    const one = failing('order 4711 of "ann@example.com" timed out after 3000 ms')
    const other = failing('order 12 of "bob@example.org" timed out after 30 ms')
    expect(fingerprint(one)).toBe(fingerprint(other))
    expect(fingerprint(one)).toMatch(/^[0-9a-f]{16}$/)
  })

  it('has it after a deploy that moved the lines and the folder', () => {
    const before = failing('x', 'Error', 'at charge (/srv/releases/41/src/billing/charge.js:10:5)')
    const after = failing('x', 'Error', 'at charge (file:///srv/releases/42/src/billing/charge.js?v=2:99:1)')
    expect(fingerprint(before)).toBe(fingerprint(after))
  })

  it('is pinned: stored fingerprints must not change with a release of ours', () => {
    expect(fingerprint(failing('order 4711 is gone'), 'retryable')).toBe('5b8f5370e94cd6ce')
  })
})

describe('another failure', () => {
  it('has another fingerprint by class, name, message or place', () => {
    const base = failing('no such order')
    const prints = [
      fingerprint(base),
      fingerprint(base, 'poison'),
      fingerprint(failing('no such customer')),
      fingerprint(failing('no such order', 'TypeError')),
      fingerprint(failing('no such order', 'Error', 'at refund (/app/src/billing/refund.js:10:5)')),
      fingerprint('no such order'),
    ]
    expect(new Set(prints).size).toBe(prints.length)
  })

  it('has another one by the rule that decided, so that each HTTP status is an outage of its own', () => {
    const statuses = [400, 401, 404, 409, 429, 500, 502, 503]
    const failed = (status: number) => Object.assign(failing(`Request failed with status code ${status}`), { status })
    const prints = (print: (error: unknown) => string) => new Set(statuses.map((status) => print(failed(status)))).size
    expect(prints((error) => fingerprint(error))).toBe(8)
    // Also where an `onFailure` has decided for all of them.
    expect(prints((error) => fingerprint(error, { class: 'retryable', rule: 'onFailure' }))).toBe(8)
  })

  it('has another one where it says that it is poison', () => {
    expect(fingerprint(new PoisonError('x'))).not.toBe(fingerprint(new Error('x')))
  })
})

describe('a message without its changing parts', () => {
  it.each([
    ['user 42 has 3 items', 'user <n> has <n> items'],
    ['took 1.5s, 10:30', 'took <n>s, <n>'],
    ['GET https://api.example.com/v1/users/7?x=1 failed', 'GET <url> failed'],
    ['connect ECONNREFUSED 10.0.0.7:5432', 'connect ECONNREFUSED <n>'],
    ['no row 0190a6c2-7b1e-7c3d-9a51-0123456789ab', 'no row <id>'],
    ['object 0xDEADBEEF, commit 3f9a2bc', 'object <id>, commit <id>'],
    ['key prod_NffrFeUfNV2Hib4x9 missing', 'key <id> missing'],
    ['at 2026-01-01T10:00:00.123Z', 'at <time>'],
    ['on 2026-01-01', 'on <time>'],
    [`Cannot read 'name' of "x \\" y" in \`z\``, 'Cannot read <value> of <value> in <value>'],
    ["can't find the user's cart", "can't find the user's cart"],
    ['mail to a.b+c@example.co.uk bounced', 'mail to <email> bounced'],
    ['order_handler_v2 failed\n\n  badly', 'order_handler_v<n> failed badly'],
    ['order-99999 is gone', 'order-<n> is gone'],
    ['order-1000000 is gone', 'order-<n> is gone'],
    ['', ''],
  ])('%s', (message, normal) => {
    expect(normaliseMessage(message)).toBe(normal)
  })

  it('does not depend on the numbers in it, and stays as it is when done twice', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.uuid(), fc.uuid(), (a, b, idA, idB) => {
        const sentence = (n: number, id: string) => `item ${id} failed ${n} times (max ${n + 1}) at /x/${n}`
        expect(normaliseMessage(sentence(a, idA))).toBe(normaliseMessage(sentence(b, idB)))
      }),
      { numRuns: 1000 },
    )
    expect(normaliseMessage("0''")).toBe('<n><value>')
    fc.assert(
      fc.property(fc.string(), (text) => {
        const once = normaliseMessage(text)
        expect(normaliseMessage(once)).toBe(once)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('the first frame of our own', () => {
  const frameOf = (...frames: string[]) =>
    ownFrame({ message: 'm', stack: `Error: m\n${frames.map((f) => `    ${f}`).join('\n')}` })

  it('is neither of Node nor of a dependency', () => {
    expect(
      frameOf(
        'at JSON.parse (<anonymous>)',
        'at node:internal/process/task_queues:95:5',
        'at process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
        'at Pool.query (/app/node_modules/pg/lib/pool.js:1:2)',
        'at async Promise.all (index 0)',
        'at async Billing.charge (/app/src/billing/charge.js:10:5)',
        'at main (/app/src/main.js:1:1)',
      ),
    ).toBe('Billing.charge@billing/charge.js')
  })

  it('reads frames without a function, on Windows, and with URLs', () => {
    expect(frameOf('at /app/src/main.js:1:1')).toBe('@src/main.js')
    expect(frameOf('at run (C:\\app\\src\\main.js:1:1)')).toBe('run@src/main.js')
    expect(frameOf('at file:///app/src/main.js:1:1')).toBe('@src/main.js')
  })

  it('is not taken from a message that looks like a stack', () => {
    const message = 'boom\n    at fake (/app/src/fake.js:1:1)'
    expect(ownFrame({ message, stack: `Error: ${message}\n    at real (/app/src/real.js:1:1)` })).toBe(
      'real@src/real.js',
    )
  })

  it('may not be there', () => {
    expect(frameOf('at node:internal:1:1')).toBeUndefined()
    expect(ownFrame('x')).toBeUndefined()
    expect(ownFrame(new Error('here'))).toMatch(/@core\/fingerprint\.test\.ts$/)
  })
})

describe('anything else that is thrown', () => {
  it('has a fingerprint', () => {
    fc.assert(
      fc.property(thrown(), (make) => {
        expect(fingerprint(make())).toMatch(/^[0-9a-f]{16}$/)
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['words', 'a'.repeat(50_000_000)],
    ['dashes', 'a-'.repeat(500_000)],
    ['quotes', `'"`.repeat(500_000)],
    ['digits', '1a'.repeat(500_000)],
    ['dots', 'a.'.repeat(500_000)],
  ])('is cheap, however long the message: %s', (_, message) => {
    const error = new Error(message)
    const before = process.cpuUsage()
    fingerprint(error)
    // What is quadratic here takes hours.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(5_000)
  })
})
