import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Read<T extends Options> = ReturnType<typeof parseArgs<{ readonly allowPositionals: true; readonly options: T }>>

/** The arguments of a program, with `--help`. What cannot be read, and a call for help, end it. */
export function readCommandLine<const T extends Options>(
  usage: string,
  options: T,
): Read<T> & { readonly refuse: (problem: string) => number } {
  /** Says what is wrong and how to call it. Yields the exit code. */
  const refuse = (problem: string): number => {
    console.error(`${problem}\n${usage}`)
    return 1
  }
  const help = { type: 'boolean', default: false } as const
  let read: ReturnType<typeof parseArgs>
  try {
    read = parseArgs({ allowPositionals: true, options: { ...options, help } })
  } catch (error) {
    process.exit(refuse((error as Error).message))
  }
  if (read.values['help'] === true) {
    console.log(usage)
    process.exit(0)
  }
  return { ...(read as Read<T>), refuse }
}
