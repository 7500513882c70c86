// Work on a file outlives its process. This program starts a worker that is killed (SIGKILL, no clean-up) in the middle of
// its second letter, and then another worker on the same file, which finds what is left.
// Run it with: npx tsx examples/durable-file.ts
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWork, defineWork, memoryBackend } from 'millrace'

const [, program = '', role, file = ''] = process.argv
if (role === undefined) tellTheStory()
else await deliver(file, role === 'mortal')

function tellTheStory(): void {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-'))
  try {
    for (const [name, as] of [
      ['The first worker', 'mortal'],
      ['The second worker', 'immortal'],
    ] as const) {
      console.log(`${name}:`)
      const args = [...process.execArgv, program, as, join(folder, 'letters.queue')]
      const { signal, status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
      console.log(signal === null ? `  It ended by itself (exit code ${status}).` : `  It was killed: ${signal}.`)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function deliver(onFile: string, dies: boolean): Promise<void> {
  const backend = memoryBackend({ queue: { file: onFile } })
  const send = defineWork('send-letter', (to: string, ctx) => {
    const isRepeated = ctx.deliveries > 1
    console.log(`  a letter to ${to}${isRepeated ? ', begun before' : ''}`)
    if (dies && to === 'Grace') process.kill(process.pid, 'SIGKILL')
    return ctx.void()
  })
  console.log(`  ${backend.queue.size()} letters are on file.`)
  const isEmpty = backend.queue.size() === 0
  // One after the other, so the story is the same each time.
  const work = createWork({ backend, work: [send], concurrency: 1, autoStart: false })
  if (isEmpty) {
    const letters = ['Ada', 'Grace', 'Barbara'].map((to) => send(to))
    await work.enqueueMany(letters) // Resolves once all three are on file.
    console.log(`  ${backend.queue.size()} letters were accepted.`)
  }
  work.start()
  while (backend.queue.size() > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  await work.stop()
  await backend.close()
}
