import { accessSync, constants, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Raised whenever the story changes, so a run which an older one began is not mistaken for ours. */
const STORY = 1

/** The files of one run of the story. */
export interface RunFolder {
  /** As a person would type it here. */
  readonly path: string
  /** Something is in it: a process before this one was ended, or killed, in the middle. */
  readonly isResumed: boolean
  /** The items, and the documents of the guild: one file, so the command line finds both. */
  readonly work: string
  readonly outside: string
  /** Marks the story as finished: the next start begins a new one. */
  finish(): void
}

/**
 * The folder of the run that is under way, or a new one when the last has come to its end. Nothing is locked: a second process on
 * the same folder shares the work. So a finished run is not deleted immediately, since someone may still be reading it, but
 * when the one after it has ended, too.
 */
export function openRunFolder(home: string): RunFolder {
  makeFolder(home)
  const prefix = `run-${STORY}.`
  const numbers = namesIn(home)
    .filter((name) => name.startsWith(prefix))
    .map((name) => Number(name.slice(prefix.length)))
    .filter(Number.isInteger)
    .sort((a, b) => a - b)
  const folderOf = (number: number): string => join(home, `${prefix}${number}`)
  const last = numbers.at(-1) ?? 0
  const isUnfinished = last > 0 && !existsSync(join(folderOf(last), 'finished'))
  const number = isUnfinished ? last : last + 1
  for (const old of numbers) if (old < number - 1) rmSync(folderOf(old), { recursive: true, force: true })
  const folder = folderOf(number)
  makeFolder(folder)
  const work = join(folder, 'work.db')
  const outside = join(folder, 'outside.db')
  // Somebody else may have begun it: told now, before a database tells it in its own way.
  for (const path of [folder, work, outside]) if (existsSync(path)) checkWritable(path)
  return {
    path: folder,
    isResumed: existsSync(work),
    work,
    outside,
    finish: () => writeFileSync(join(folder, 'finished'), ''),
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    return giveUp(`Cannot read the folder ${folder}`, error)
  }
}

function makeFolder(folder: string): void {
  try {
    makeWithParents(resolve(folder))
  } catch (error) {
    giveUp(`Cannot make the folder ${folder}`, error)
  }
}

/** One by one: `recursive` of Node loops forever where a folder exists and takes none (/proc). */
function makeWithParents(folder: string): void {
  if (existsSync(folder)) return
  makeWithParents(dirname(folder))
  try {
    mkdirSync(folder)
  } catch (error) {
    // Somebody who starts at the same time may have made it.
    if (!existsSync(folder)) throw error
  }
}

function checkWritable(path: string): void {
  try {
    accessSync(path, constants.W_OK)
  } catch (error) {
    giveUp(`Cannot write to ${path}`, error)
  }
}

function giveUp(what: string, error: unknown): never {
  console.error(`${what}: ${error instanceof Error ? error.message : error}`)
  console.error('Set MILLRACE_START_DIR to a folder that can be written to.')
  process.exit(1)
}
