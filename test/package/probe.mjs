// Opens one door of the installed package and writes down what it found and what opening it left behind.
// node probe.mjs <door> <report file> [require]
import { createHook } from 'node:async_hooks'
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [door, reportFile, how] = process.argv.slice(2)

// Things that live on after an import: they wake the process up, or hold a part of the system.
const LASTING =
  /^(Timeout|FSEVENTWRAP|STATWATCHER|TCP|PIPE|UDP|TTY|HTTP|TLS|WORKER|PROCESSWRAP|SIGNALWRAP|DNSCHANNEL|ZLIB)/

const listeners = () => process.eventNames().map((name) => `${String(name)} × ${process.listenerCount(name)}`)
const globals = () => Reflect.ownKeys(globalThis).map(String)

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

const opened = how === 'require' ? createRequire(import.meta.url)(String(door)) : await import(String(door))

hook.disable()
for (const name of listeners()) if (!before.listeners.has(name)) left.push(`listens on the process: ${name}`)
for (const name of globals()) if (!before.globals.has(name)) left.push(`made a global: ${name}`)

const names = Object.keys(opened)
  .filter((name) => name !== '__esModule' && name !== 'module.exports')
  .sort()
writeFileSync(String(reportFile), JSON.stringify({ names, left }))
