// Opens doors of the installed package, one after the other, and writes down what it found and what opening them left behind.
// node probe.mjs <door,door,…> <report file> import|require
import { createHook } from 'node:async_hooks'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [doors, reportFile, how] = process.argv.slice(2)

// Things that live on after an import: they wake the process up, or hold a part of the system.
const LASTING =
  /^(Timeout|FSEVENTWRAP|STATWATCHER|TCP|PIPE|UDP|TTY|HTTP|TLS|WORKER|PROCESSWRAP|SIGNALWRAP|DNSCHANNEL|ZLIB)/

const listeners = () => process.eventNames().map((name) => `${String(name)} × ${process.listenerCount(name)}`)
// Copies of the package agree by what they keep under its own symbols.
const globals = () =>
  Reflect.ownKeys(globalThis)
    .map(String)
    .filter((name) => !name.startsWith('Symbol(millrace.'))

const before = { listeners: new Set(listeners()), globals: new Set(globals()) }
/** @type {string[]} */
const left = []
// Node opens these itself when some of its own modules are loaded (node:assert asks stderr for its colours).
void process.stdout
void process.stderr

const hook = createHook({
  init(_id, type) {
    if (LASTING.test(type)) left.push(`opened a ${type}`)
  },
}).enable()

/** @type {Record<string, string[]>} */
const names = {}
for (const door of String(doors).split(',')) {
  const opened = how === 'require' ? createRequire(import.meta.url)(door) : await import(door)
  names[door] = Object.keys(opened)
    .filter((name) => name !== '__esModule' && name !== 'module.exports')
    .sort()
}

hook.disable()
for (const name of listeners()) if (!before.listeners.has(name)) left.push(`listens on the process: ${name}`)
for (const name of globals()) if (!before.globals.has(name)) left.push(`made a global: ${name}`)

writeFileSync(String(reportFile), JSON.stringify({ names, left }))
