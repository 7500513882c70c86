import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineContract, defineWork } from '../../src/index.js'
import { GROUNDS, world } from './support.js'

const Mail = z.object({ to: z.string(), copies: z.coerce.number() })

describe('a contract', () => {
  it('refuses options that count where its handler runs, and its handler those that count at enqueue', () => {
    expect(() => defineContract('mail', Mail, { concurrency: 2 } as object)).toThrow(
      'contract "mail".concurrency must be given to defineWork(contract, handler, options)',
    )
    expect(() => defineWork(defineContract('mail', Mail), () => 1, { retry: {} } as object)).toThrow(
      'work "mail".retry must be given to defineContract',
    )
    expect(() => defineContract('mail', Mail, { retri: {} } as object)).toThrow('Did you mean "retry"?')
    expect(() => defineContract('', Mail)).toThrow('defineContract name')
    expect(() => defineContract('mail', { retry: { attempts: 3 } } as never)).toThrow(
      'the schema of defineContract("mail", schema, options) must be a Standard Schema, like those of zod or valibot, or undefined (options come after it)',
    )
  })
})

describe.each(GROUNDS)('work that is defined in two parts (%s)', (ground) => {
  it('is added by a process that has no handler, and run by one that has', async () => {
    const mail = defineContract('mail', Mail, { tags: ['mail'], retry: { attempts: 2 } }).returns<string>()
    const { w, until, another, clock } = world(ground, { work: [mail] })
    const handle = w.enqueue(mail({ to: 'ada', copies: 2 }))
    const byName = w.enqueue('mail', { to: 'bob', copies: '3' })
    expect(await until(handle.accepted())).toMatchObject({ kind: 'created' })
    await until(byName.accepted())
    await clock.advance(1_000)
    expect((await until(w.states([handle.id])))[0]).toMatchObject({ status: 'pending', tags: ['mail'] })

    const worker = another({
      work: [defineWork(mail, ({ to, copies }) => `${to} ${copies + 1}`, { concurrency: 4 })],
    })
    expect(await until(handle.result())).toBe('ada 3')
    expect(await until(byName.result())).toBe('bob 4')
    await until(worker.stop())
  })

  it('checks inputs where they are added', async () => {
    const mail = defineContract('mail', Mail)
    const { w, until } = world(ground, { work: [mail] })
    await expect(until(w.enqueue(mail({ to: 5 as never, copies: 1 })).accepted())).rejects.toMatchObject({
      code: 'SCHEMA_MISMATCH',
    })
  })

  it('is one type in a process that knows both parts', async () => {
    const mail = defineContract('mail').takes<{ readonly to: string }>()
    const send = defineWork(mail, ({ to }) => to.length)
    const { w, until } = world(ground, { work: [mail, send] })
    expect(await until(w.enqueue(mail({ to: 'ada' })).result())).toBe(3)
    expect(await until(w.enqueue(send({ to: 'bo' })).result())).toBe(2)
    expect(() => w.enqueue(defineContract('mail').takes<null>()(null))).toThrow(
      expect.objectContaining({ code: 'DUPLICATE_TYPE' }),
    )
  })
})
