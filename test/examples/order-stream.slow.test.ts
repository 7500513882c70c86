import { describe, it } from 'vitest'
import { temporaryFile } from '../drivers/sqlite/temporary.js'
import { expectOrderStreamOn } from './order-stream.js'

describe('order-stream keeps lanes, runs each order once, and brings dead letters back', () => {
  it('in memory', () => expectOrderStreamOn('memory'))
  it('on SQLite', () => expectOrderStreamOn(`sqlite:${temporaryFile()}`))
})
