import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createWork, defineWork, PoisonError } from 'millrace'
import { sqliteBackend } from 'millrace/sqlite'
import { root } from '../../scripts/lib/root.mjs'

/** The command as the build made it. */
export const MAIN = join(root, 'dist', 'cli', 'main.js')

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/** Runs the command in a separate process. `whileRunning` may disturb it. */
export function millrace(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  whileRunning: (child: { kill(signal: NodeJS.Signals): void; err(): string }) => void | Promise<void> = () => {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...process.env, NO_COLOR: '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (data) => {
      out += String(data)
    })
    child.stderr.on('data', (data) => {
      err += String(data)
    })
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, out, err }))
    // What it throws must fail the test, and not wait for the process.
    Promise.resolve(whileRunning({ kill: (signal) => void child.kill(signal), err: () => err })).catch(
      (error: unknown) => {
        child.kill('SIGKILL')
        reject(error)
      },
    )
  })
}

/** A file with so many dead items of type `broken`, and one that succeeded. */
export async function fileWithDead(file: string, count: number): Promise<void> {
  const backend = sqliteBackend({ file })
  const broken = defineWork('broken', ({ n }: { n: number }) => {
    throw new PoisonError(`no such thing \u001b]0;owned\u0007 as ${n % 3}`)
  })
  const fine = defineWork('fine', (_: { n: number }, ctx) => ctx.result('ok'))
  const work = createWork({ backend, work: [broken, fine] as const })
  const handles = await work.enqueueMany(Array.from({ length: count }, (_, n) => broken({ n })))
  await Promise.all([...handles.map((one) => one.group()), work.enqueue(fine({ n: 0 })).group()])
  await work.stop()
  await backend.close()
}

/** What does not fit easily: long types and queues, long errors of several lines with causes, UUIDs, wide characters. */
export async function fileWithLongNames(file: string): Promise<void> {
  const backend = sqliteBackend({ file })
  const invoice = defineWork(
    'billing.invoices.render-and-send-to-customer',
    ({ customer }: { customer: string }) => {
      throw new PoisonError(
        `the invoice of ${customer} cannot be rendered: the template "invoices/2026/standard-with-discount.html" refers to the field ` +
          '"customer.billingAddress.countryCode", which the contract of this customer does not have.\nExpected: a code of two letters\nReceived: undefined',
        { cause: new TypeError("Cannot read properties of undefined (reading 'countryCode')") },
      )
    },
    { queue: backend.named('documents-for-customers-in-europe') },
  )
  const notify = defineWork(
    '顧客.通知を送信',
    (_: { n: number }) => {
      throw Object.assign(
        new Error(
          '通知サーバーに接続できませんでした。しばらくしてからもう一度お試しください。担当者に連絡してください 🚧🚧🚧',
        ),
        {
          status: 503,
        },
      )
    },
    { retry: { attempts: 5, base: 3_600_000, jitter: 0 } },
  )
  const exportData = defineWork('export', ({ n }: { n: number }) => n)
  const work = createWork({ backend, work: [invoice, notify, exportData] as const })
  const dead = await work.enqueueMany([invoice({ customer: 'ACME' }), invoice({ customer: '株式会社サンプル' })])
  await Promise.all([...dead.map((one) => one.group()), work.enqueue(exportData({ n: 1 })).group()])
  await work.enqueue(notify({ n: 1 })).accepted()
  await work.stop()
  await backend.close()
}
