import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { MillraceError } from '../../src/core/error.js'
import { onceWarner, warnOnce } from '../../src/core/process/warn-once.js'

function warnings(): () => readonly string[] {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  onTestFinished(() => warn.mockRestore())
  return () => warn.mock.calls.map(([text]) => String(text))
}
const say = (error: unknown) => warnOnce('MILLRACE_TEST', error, 'an option')

describe('an error without a listener', () => {
  it('is a process warning with its own code and the option that receives it, once', () => {
    const said = warnings()
    say(Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' }))
    say(Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' }))

    expect(said()).toEqual([
      'ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:1 (Reported once. an option is called with every error.)',
    ])
  })

  it('is the same trouble as its cause, and as one that only took longer', () => {
    const said = warnings()
    const cause = new Error('refused 127.0.0.1:2')
    say(cause)
    say(new MillraceError('UNREACHABLE', 'no connection', { cause }))
    say(new Error('no answer within 10 ms'))
    say(new Error('no answer within 250.5 ms'))

    expect(said()).toHaveLength(2)
  })

  it('shows no password', () => {
    const said = warnings()
    say(new Error('cannot reach postgres://app:secret@db/shop'))

    expect(said()[0]).not.toContain('secret')
  })

  it('is the last one that is said when too many are remembered, and says so', () => {
    const said = warnings()
    const warn = onceWarner(3)
    for (let n = 1; n <= 10; n += 1) warn('MILLRACE_TEST', new Error(`trouble ${n}`), 'an option')

    expect(said()).toHaveLength(4)
    expect(said()[3]).toBe(
      'trouble 4 (This process has met 3 different errors, and reports no new ones. an option is called with every error.)',
    )
  })
})
