import { expect, it } from 'vitest'
import { overPlainPorts } from '../../../src/backends/plain/over-plain-ports.js'
import { memoryBackend } from '../../../src/index.js'
import { openAudit } from '../../../src/ops/audit/audit.js'
import { type OpsContext, openOpsContext } from '../../../src/ops/context.js'
import type { ItemQuery } from '../../../src/ports/inspect.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { DEPENDENCY_TYPE } from '../../../src/work/define/dependency.js'

it('an audit that searches for the gate of a missing item never walks through ended gates', async () => {
  const clock = new FakeClock()
  const context = openOpsContext(overPlainPorts, memoryBackend({ clock }), { clock })
  const { ledger } = context
  const item = (id: string, type: string, input: string) => {
    const [queueAt, startAt] = [clock.now(), clock.now()]
    return { id, type, groupId: id, input, queueAt, startAt, attempt: 1, priority: 0 }
  }
  const push = (id: string, type: string, input: string, hold?: { readonly by: 'gate'; readonly key: string }) => ({
    guard: { by: 'absent' as const, id },
    effects: [
      { do: 'joinGroup' as const, groupId: id, count: 1 },
      {
        do: 'enqueue' as const,
        item: item(id, type, input),
        queue: 'default',
        ...(hold === undefined ? { delayMs: 0 } : { delayMs: Infinity, hold }),
      },
      ...(hold === undefined
        ? []
        : [
            {
              do: 'openGate' as const,
              key: hold.key,
              heldId: id,
              need: 1,
              of: 'done' as const,
              members: [`${id}-member`],
            },
          ]),
    ],
  })
  // Many gates that have ended; one that waits for an item that was never enqueued, and one whose member the gate `later` is going to queue.
  const ended = Array.from({ length: 1_000 }, (_, n) => `gate-${n}`)
  await ledger.commit(ended.map((id) => push(id, DEPENDENCY_TYPE, '{}')))
  await ledger.commit(
    ended.map((id) => ({
      guard: { by: 'status' as const, id, in: ['pending' as const] },
      effects: [
        { do: 'complete' as const, id, ending: 'completed' as const, keepMs: 86_400_000 },
        { do: 'leaveGroup' as const, groupId: id, count: 1 },
      ],
    })),
  )
  await ledger.commit([
    push('lost', 'mail', '1', { by: 'gate', key: 'k-lost' }),
    push('kept', 'mail', '1', { by: 'gate', key: 'k-kept' }),
    push('later', DEPENDENCY_TYPE, JSON.stringify({ queue: [{ id: 'kept-member' }] })),
  ])
  await clock.advance(120_000)

  const asked: Partial<ItemQuery>[] = []
  const inspect: OpsContext['inspect'] = (call) => {
    const near = context.inspect(call)
    const list: typeof near.list = (query) => {
      if (query.type === DEPENDENCY_TYPE) asked.push(query)
      return near.list(query)
    }
    return { ...near, list }
  }
  const { findings } = await openAudit({ ...context, inspect }).audit()
  expect(findings.filter(({ code }) => code === 'gate-unknown').map(({ id }) => id)).toEqual(['lost'])
  expect(asked.length, 'one page of each state that a gate can be in').toBeLessThan(10)
  expect(asked.every(({ state }) => state !== undefined && state !== 'completed')).toBe(true)
})

it('an audit says which groups it could not compare, because they changed at every read', async () => {
  const clock = new FakeClock()
  const context = openOpsContext(overPlainPorts, memoryBackend({ clock }), { clock })
  const [queueAt, startAt] = [clock.now(), clock.now()]
  const push = (id: string, parent?: string) => ({
    guard: { by: 'absent' as const, id },
    effects: [
      { do: 'joinGroup' as const, groupId: 'g', count: 1 },
      {
        do: 'enqueue' as const,
        item: {
          id,
          type: 't',
          groupId: 'g',
          input: '1',
          queueAt,
          startAt,
          attempt: 1,
          priority: 0,
          ...(parent && { parent }),
        },
        queue: 'default',
        delayMs: 3_600_000,
      },
    ],
  })
  await context.ledger.commit([push('g'), push('child', 'g')])
  let moved = 0
  const inspect = context.inspect('audit')
  const openCounts: typeof inspect.openCounts = async (ids) =>
    (await inspect.openCounts(ids)).map((open) => {
      moved += 1
      return open && open + moved
    })

  const report = await openAudit({ ...context, inspect: () => ({ ...inspect, openCounts }) }).audit()

  expect(report).toMatchObject({ found: 0, isComplete: true, skipped: [{ code: 'kept-changing', count: 1 }] })
  expect((await openAudit(context).audit()).skipped).toEqual([])
})

it('an audit of a busy fleet does not closely check groups that have only moved on', async () => {
  const clock = new FakeClock()
  const context = openOpsContext(overPlainPorts, memoryBackend({ clock }), { clock })
  const [queueAt, startAt] = [clock.now(), clock.now()]
  const groups = Array.from({ length: 300 }, (_, n) => `g-${n}`)
  const ids = (groupId: string) => [groupId, `${groupId}/child`]
  await context.ledger.commit(
    groups.flatMap((groupId) =>
      ids(groupId).map((id) => ({
        guard: { by: 'absent' as const, id },
        effects: [
          { do: 'joinGroup' as const, groupId, count: 1 },
          {
            do: 'enqueue' as const,
            item: { id, type: 't', groupId, input: '1', queueAt, startAt, attempt: 1, priority: 0 },
            queue: 'default',
            delayMs: 3_600_000,
          },
        ],
      })),
    ),
  )
  const looked = new Set<string>()
  let isOver = false
  const inspect: OpsContext['inspect'] = (call) => {
    const near = context.inspect(call)
    const list: typeof near.list = async (query) => {
      if (query.groupId !== undefined) looked.add(query.groupId)
      // The last of the lists: whatever was in the others is seen. All of it ends now, apart from one group that is wrong.
      if (query.state === 'active' && !isOver) {
        isOver = true
        const [wrong = '', ...others] = groups
        await context.ledger.commit([
          ...others.flatMap((groupId) =>
            ids(groupId).map((id) => ({
              guard: { by: 'status' as const, id, in: ['pending' as const] },
              effects: [
                { do: 'complete' as const, id, ending: 'completed' as const, keepMs: 86_400_000 },
                { do: 'leaveGroup' as const, groupId, count: 1 },
              ],
            })),
          ),
          { guard: { by: 'none' as const }, effects: [{ do: 'joinGroup' as const, groupId: wrong, count: 1 }] },
        ])
      }
      return near.list(query)
    }
    return { ...near, list }
  }

  const { findings, isComplete } = await openAudit({ ...context, inspect }).audit()

  expect(isComplete).toBe(true)
  expect(findings.map(({ code, text }) => [code, text.split(' ', 3).join(' ')])).toEqual([
    ['group-count', 'Group g-0 counts'],
  ])
  expect([...looked]).toEqual(['g-0'])
})
