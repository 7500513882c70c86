import { writeSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import type { ReadStream, WriteStream } from 'node:tty'
import { systemClock } from '../core/time/clock.js'
import { EXIT } from './exit.js'
import type { Io, KeyInput, Sink } from './io.js'
import { ENTER, LEAVE } from './terminal/live.js'

/** The `Io` of a real process. */
export function processIo(): Io {
  const { stdin, stdout, stderr } = process
  const closed = new AbortController()
  // A reader that closes the pipe (`| head`) is not an error.
  const out = sinkOn(stdout, 1, () => closed.abort())
  const err = sinkOn(stderr, 2, () => undefined)
  const isPerson = stdin.isTTY === true && stderr.isTTY === true
  return {
    out,
    err,
    keys: stdin.isTTY === true && stdout.isTTY === true ? keysOf(stdin) : undefined,
    ask: isPerson ? (question) => ask(question) : undefined,
    env: process.env,
    clock: systemClock,
    user: whoami(),
    onInterrupt(run) {
      process.on('SIGINT', run)
      process.on('SIGTERM', run)
      return () => {
        process.off('SIGINT', run)
        process.off('SIGTERM', run)
      }
    },
    onResize(run) {
      stdout.on('resize', run)
      return () => void stdout.off('resize', run)
    },
    closed: closed.signal,
    exit: (code) => process.exit(code),
  }
}

function sinkOn(stream: WriteStream, fd: number, gone: () => void): Sink {
  let isGone = false
  let isAway = false
  // However the process ends, the terminal gets its screen and cursor back.
  process.once('exit', () => {
    if (isAway && !isGone) writeSync(fd, LEAVE)
  })
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    isGone = true
    gone()
  })
  return {
    write: (text) => {
      if (isGone) return
      if (text === ENTER || text === LEAVE) isAway = text === ENTER
      stream.write(text)
    },
    isTerminal: stream.isTTY === true,
    get columns() {
      return stream.isTTY === true && stream.columns > 0 ? stream.columns : 80
    },
    get rows() {
      return stream.isTTY === true && stream.rows > 0 ? stream.rows : 24
    },
  }
}

function keysOf(stdin: ReadStream): KeyInput {
  return {
    listen(onKey) {
      const onData = (data: Buffer) => onKey(data.toString('utf8'))
      stdin.setRawMode(true)
      stdin.on('data', onData)
      stdin.resume()
      return () => {
        stdin.off('data', onData)
        stdin.setRawMode(false)
        stdin.pause()
      }
    },
  }
}

async function ask(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await new Promise<string | undefined>((resolve) => {
      lines.once('SIGINT', () => resolve(undefined))
      lines.once('close', () => resolve(undefined))
      lines.question(question).then(resolve, () => resolve(undefined))
    })
  } finally {
    lines.close()
  }
}

function whoami(): string {
  let user = process.env['USER'] ?? 'unknown'
  try {
    user = userInfo().username
  } catch {
    // A user without an entry, as in many containers.
  }
  return `${user}@${hostname()}`
}

/** Exits with that code, once the output is flushed. */
export function endWith(code: number): void {
  process.exitCode = code
  const last = () => process.exit(code)
  if (process.stdout.destroyed || process.stdout.writableLength === 0) last()
  else process.stdout.write('', last)
}

/** Reports uncaught errors without a stack trace, and exits. */
export function onUncaught(report: (error: unknown) => void): void {
  const end = (error: unknown) => {
    report(error)
    process.exit(EXIT.failed)
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}
