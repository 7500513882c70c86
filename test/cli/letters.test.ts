import { memoryBackend } from 'millrace'
import type { Ops } from 'millrace/ops'
import { messageBody } from 'millrace/source'
import { describe, expect, it } from 'vitest'
import { Bench } from './support.js'

async function world(answer?: string) {
  const backend = memoryBackend()
  const orders = backend.named('orders')
  const detail = (reason: string) =>
    JSON.stringify({ class: reason, subject: 'orders', attempts: 5, source: 'shipping' })
  await orders.deadLetters.add({
    ...{ id: 'o-1', error: 'Error: the bank is \u001b[31mclosed', detail: detail('retryable') },
    body: messageBody('{"qty":1}', { key: 'c-7', headers: { 'x-trace': 'abc' } }),
  })
  await orders.deadLetters.add({ id: 'o-2', body: '{"qty":-1}', error: 'RangeError: qty', detail: detail('poison') })
  return { backend, orders, bench: new Bench({ backend, ...(answer === undefined ? {} : { answer }) }) }
}

describe('dead letters of streams on the command line', () => {
  it('are listed, narrowed by flags, and shown whole', async () => {
    const { bench } = await world()
    const all = await bench.said('letters', '--queue', 'orders')
    expect(all.code).toBe(0)
    expect(all.out).toContain('the bank is')
    expect(all.out).not.toContain('\u001b[31m')
    expect(all.out).toContain('RangeError: qty')
    const poison = (await bench.json('letters', '--queue', 'orders', '--class', 'poison')) as Awaited<
      ReturnType<Ops['letters']>
    >
    expect(poison.letters.map(({ id, reason, attempts }) => [id, reason, attempts])).toEqual([['o-2', 'poison', 5]])
    const one = await bench.said('letters', 'o-1', '--queue', 'orders')
    for (const part of ['header x-trace: abc', 'key: c-7', 'value: {"qty":1}', 'stream: shipping'])
      expect(one.out).toContain(part)
    expect((await bench.said('letters')).out).toBe('No dead letter matches.\n')
    expect((await bench.said('letters', 'nope')).code).toBe(1)
  })

  it('come page by page', async () => {
    const { bench } = await world()
    const first = (await bench.json('letters', '--queue', 'orders', '--limit', '1')) as { next: string }
    const second = await bench.json('letters', '--queue', 'orders', '--limit', '1', '--cursor', first.next)
    expect(second).toMatchObject({ letters: [{ id: 'o-2' }] })
  })

  it('are redriven after a question, and the log says by whom', async () => {
    const { bench, orders, backend } = await world('y')
    const { code, out } = await bench.said(
      'redrive-letters',
      '--queue',
      'orders',
      '--class',
      'retryable',
      '--why',
      'open',
    )
    expect([code, out]).toEqual([0, 'Redrove 1 letter.\n'])
    expect(bench.asked).toEqual(['redrive-letters 1 letter? [y/N] '])
    const [pulled] = orders.pop(5, 1_000)
    expect([pulled?.id, orders.deadLetters.count()]).toEqual(['o-1', 1])
    expect((await bench.said('log')).out).toContain(
      'redrive of dead letters queue:orders class:retryable done: 1 changed',
    )
    expect(backend.queue.size()).toBe(0)
  })

  it('are left alone without an answer, and only counted by a dry run', async () => {
    const { bench, orders } = await world('n')
    expect((await bench.said('discard-letters', '--queue', 'orders', '--all')).code).toBe(1)
    expect((await bench.said('discard-letters', '--queue', 'orders', '--all', '--dry-run')).out).toBe(
      'discard-letters would change 2 letters.\n',
    )
    expect(orders.deadLetters.count()).toBe(2)
    const noTerminal = await (await world()).bench.said('discard-letters', '--queue', 'orders', '--all')
    expect([noTerminal.code, noTerminal.err]).toEqual([2, expect.stringContaining('add --yes')])
    expect((await bench.said('discard-letters', '--queue', 'orders', '--all', '--yes')).out).toBe(
      'Discarded 2 letters.\n',
    )
  })

  it.each([
    [['redrive-letters']],
    [['redrive-letters', 'o-1', '--all']],
    [['redrive-letters', '--all', '--class', 'poison']],
  ])('refuse %j', async (args) => {
    expect((await (await world('y')).bench.said(...args)).code).toBe(2)
  })
})
