import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/lib/root.mjs'
import { typescriptProgram } from '../../scripts/lib/run-typescript.mjs'

function run(file: string) {
  const { command, args, env } = typescriptProgram(file)
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: 'utf8', timeout: 60_000 })
  return { status, stdout, stderr }
}

describe('an example, run as a program on the built package', () => {
  // S45 W9
  it('quick-start retries once and prints the result', () => {
    expect(run('examples/quick-start.ts')).toEqual({
      status: 0,
      stdout: 'Hello, Ada, on attempt 2.\n',
      stderr: '',
    })
  })

  it('classify-and-retry shows classes, times and a call that gets through', () => {
    const { status, stdout, stderr } = run('examples/classify-and-retry.ts')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/an order with a negative total +poison +explicit/)
    expect(stdout).toMatch(/HTTP 429 +retryable +http-429 +5000 ms/)
    expect(stdout).toMatch(/a wrapped cause +poison/)
    expect(stdout).toMatch(/^ +5 +4000 to 8000 ms +7500 to 15000 ms$/m)
    expect(stdout).toMatch(/attempt 2 timed out; 3 attempts left/)
    expect(stdout).toMatch(/attempt 3 got through\.\n$/)
  })

  it('fan-out adds up what its parts contribute, although one of them is dead-lettered', () => {
    const { status, stdout, stderr } = run('examples/fan-out.ts')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain('RetryableError: the page is stuck (retryable, will be retried)\n')
    expect(stdout).toContain('PoisonError: there is no chapter "four" (poison, dead-lettered)\n')
    expect(stdout).toMatch(/^21 words in chapters one, three, two\.\n$/m)
  })

  it('durable-file continues after its worker was killed', () => {
    const { status, stdout, stderr } = run('examples/durable-file.ts')
    const [first = '', second = ''] = stdout.split('The second worker:\n')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(first).toMatch(
      / {2}3 letters were accepted\.\n {2}a letter to Ada\n {2}a letter to Grace\n.* killed: SIGKILL\./,
    )
    // Ada's letter may be there once more: it was written, and its end perhaps not yet on file when the kill came.
    expect(second).toMatch(/^ {2}[23] letters are on file\.\n/)
    expect(second).toMatch(/ {2}a letter to Grace, begun before\n {2}a letter to Barbara.*\n.*\(exit code 0\)/)
  })

  it('simulation finds every order charged, whatever goes wrong', () => {
    const { status, stdout, stderr } = run('examples/simulation.ts')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(
      /^50 seeds, [1-9]\d* crashes, \d+ runs of 500 items; [1-9]\d* items ran more than once: charge /,
    )
  })

  it('guild-writs shows what happens to two orders and their parts', () => {
    const { status, stdout, stderr } = run('examples/guild-writs.ts')
    const [ada = '', grace = '', rest = ''] = stdout.split(/^\d\. .*\n/m).slice(1)

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(ada).toMatch(/rye: open → stuck \(the oven is cold\)/)
    expect(ada).toMatch(/rye: open → completed \(baked at last\)\n +Ada's order: open → completed \(baked at last\)\n$/)
    expect(grace).toMatch(
      /tea: open → failed \(we do not sell tea\)\n +Grace's order: open → failed \(we do not sell tea\)/,
    )
    expect(grace).toMatch(/cake: open → cancelled \(Automatically cancelled due to parent termination\)/)
    expect(grace).toMatch(/icing: open → cancelled/)
    expect(rest).toMatch(/w-… cannot go to "open": "cancelled" is terminal\./)
    expect(rest).toMatch(/icing depends on cake\n +0 writs are owed\.\n$/)
  })

  it('guild-retry shows an automatic retry, and why the rest is as it is', () => {
    const { status, stdout, stderr } = run('examples/guild-retry.ts')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const ofRye = stdout.split('\n').filter((line) => /^rye|the retry decided/.test(line))
    expect(ofRye).toEqual([
      'rye: open → stuck (the oven is cold, retryable: true)',
      'rye: stuck → open (the oven is cold)',
      '  the retry decided to requeue: It has had 1 of 2 attempts.',
      'rye: open → completed ({"bread":"rye bread"})',
    ])
    expect(stdout).toContain('stone: open → stuck (a stone is no bread, retryable: false)\n')
    expect(stdout).toContain('rye is completed after 2 of at most 2 rigs: {"bread":"rye bread"}\n')
    expect(stdout).toContain('rig 1 is stuck: dough completed, oven failed (the oven is cold)\n')
    expect(stdout).toContain('sandwich is completed after 1 of at most 2 rigs: ')
    expect(stdout).toContain('soup is stuck after 0 of at most 2 rigs: Blocked by failed dependency: w-…\n')
    expect(stdout).toContain('No retry: It is stuck by failed-blocker')
  })

  it('streams consumes, classifies, retries, dead-letters and replays', () => {
    const { status, stdout, stderr } = run('examples/streams.ts')
    const [consumed = '', deadLettered = '', replayed = ''] = stdout.split(/^\d\. .*\n/m).slice(1)

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(consumed).toMatch(/o-1, attempt 1: done/)
    expect(consumed).toMatch(/o-1, attempt 1: dropped, it was done before/)
    expect(consumed).toMatch(/o-2, attempt 2: again in \d+ ms: the payment service is busy/)
    expect(consumed).toMatch(/o-2, attempt 3: done/)
    expect(consumed).toMatch(/o-3, attempt 1: dead-lettered \(poison\): .* does not match its schema/)
    expect(consumed).toMatch(/o-4, attempt 1: dead-lettered \(poison\): Cannot decode/)
    expect(consumed).toMatch(/o-5, attempt 1: dead-lettered \(invalidForState\)/)
    expect(consumed).toMatch(/o-6, attempt 3: dead-lettered \(retryable\): the warehouse is down/)
    expect(consumed).toMatch(/2 done, 1 dropped, 4 tries that failed, 4 dead-lettered\./)
    expect(deadLettered).toMatch(/^ +\S+-6 +retryable +3 attempts +Error$/m)
    expect(replayed).toMatch(/o-6, attempt 1: done/)
    expect(replayed).toMatch(/3 are left for a person: (poison|invalid_for_state|, )+\.\n$/)
  })
})
