import { join } from 'node:path'
import { root } from './root.mjs'

/**
 * How to run a TypeScript program of this repository on plain Node: the program and its arguments for `spawn`.
 * Programs import `millrace` by name and get the build in `dist`, as users do. (tsconfig.json maps the names to `src` for
 * the compiler, and tsx would follow it; the build's own configuration has no such map.)
 * @param {string} file
 * @param {readonly string[]} [args]
 * @returns {{ command: string, args: string[], env: NodeJS.ProcessEnv }}
 */
export function typescriptProgram(file, args = []) {
  return {
    command: process.execPath,
    args: ['--import', import.meta.resolve('tsx'), join(root, file), ...args],
    env: { ...process.env, TSX_TSCONFIG_PATH: join(root, 'tsconfig.build.json') },
  }
}
