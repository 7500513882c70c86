#!/usr/bin/env node
import { secretHider } from '../core/text/secrets.js'
import { keepAlive } from '../core/time/keep-alive.js'
import { endWith, onUncaught, processIo } from './process-io.js'
import { renderError } from './report-error.js'
import { runCli } from './run.js'
import { notesOf } from './screen.js'

const io = processIo()
onUncaught((error) => {
  const { argv, env } = process
  // Hides the secrets of every word that may be an address.
  const hide = [env['MILLRACE_BACKEND'], ...argv.flatMap((word) => [word, word.replace(/^--backend=/, '')])]
    .filter((text) => text?.includes('://'))
    .map(secretHider)
    .reduce((all, one) => (text) => one(all(text)), secretHider(undefined))
  const report = {
    isJson: argv.includes('--json'),
    isDebug: argv.includes('--debug'),
    ...notesOf(io, false),
    hide,
    help: undefined,
  }
  io.err.write(`${renderError(error, report).join('\n')}\n`)
})
// Our timers do not keep the process alive, so this does.
const release = keepAlive()
void runCli(process.argv.slice(2), io).then((code) => {
  release()
  endWith(code)
})
