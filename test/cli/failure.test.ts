import { describe, expect, it } from 'vitest'
import { plain } from '../../src/cli/terminal/paint.js'
import { renderFailure } from '../../src/cli/views/failure.js'
import { errorDetail } from '../../src/core/failure/error-detail.js'

const OURS = '    at run (file:///srv/shop/node_modules/millrace/dist/work/run/run-handler.js:98:58)'
const NODES = '    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)'

function failed(message: string, frames: readonly string[], cause?: Error): Error {
  const error = new Error(message, { cause })
  error.stack = [`Error: ${message}`, ...frames].join('\n')
  return error
}
function shown(error: Error, { columns = 80, isFull = false } = {}): readonly string[] {
  return renderFailure(errorDetail(error)!, { columns, isFull, paint: plain })
}

describe('the last failure of an item', () => {
  const cause = failed('the pool is closed', ['    at Pool.get (/srv/shop/src/database.ts:12:9)', OURS, NODES])
  const error = failed(
    'the order cannot be charged',
    ['    at charge (/srv/shop/src/charge.ts:7:29)', OURS, NODES],
    cause,
  )

  it('is its message, the frames of the own code, and its causes; the rest is counted', () => {
    expect(shown(error)).toEqual([
      '  Error: the order cannot be charged',
      '      at charge (/srv/shop/src/charge.ts:7:29)',
      '  Caused by: Error: the pool is closed',
      '      at Pool.get (/srv/shop/src/database.ts:12:9)',
      '  … 4 stack lines of Node and of packages; --full shows them',
    ])
  })

  it('is everything with --full', () => {
    expect(shown(error, { isFull: true, columns: 200 })).toEqual([
      '  Error: the order cannot be charged',
      '      at charge (/srv/shop/src/charge.ts:7:29)',
      `      ${OURS.trim()}`,
      `      ${NODES.trim()}`,
      '  Caused by: Error: the pool is closed',
      '      at Pool.get (/srv/shop/src/database.ts:12:9)',
      `      ${OURS.trim()}`,
      `      ${NODES.trim()}`,
    ])
  })

  it('has every place whole, however narrow the terminal is', () => {
    const place = '(/srv/shop/releases/2026-11-19/packages/payments/src/handlers/charge-credit-card.ts:107:29)'
    expect(shown(failed('no', [`    at Charger.charge ${place}`]), { columns: 60 })).toEqual([
      '  Error: no',
      '      at Charger.charge',
      `        ${place}`,
    ])
  })

  it('has the innermost frames when none is of the own code', () => {
    expect(shown(failed('no', [OURS, NODES, NODES, NODES]), { columns: 200 })).toEqual([
      '  Error: no',
      `      ${OURS.trim()}`,
      `      ${NODES.trim()}`,
      '  … 2 stack lines of Node and of packages; --full shows them',
    ])
  })

  it('cannot control the terminal', () => {
    const text = shown(failed('a\u001b[2Jb\nc', ['    at \u001b[31mx (/srv/a.ts:1:1)'])).join('\n')
    expect(text).toBe('  Error: a␛[2Jb\n  c\n      at ␛[31mx (/srv/a.ts:1:1)')
  })
})
