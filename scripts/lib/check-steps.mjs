import { COMPILER_ARGS, compilerEnvironment } from './compiler.mjs'
import { testStep } from './test-run.mjs'

/** What `npm run check` runs, the longest first so that two at a time end together. */
export function checkSteps() {
  return [
    testStep('fast'),
    // What has not changed since the last time is not looked at again.
    {
      name: 'types and type tests',
      command: 'tsc',
      args: ['-p', '.', '--incremental', '--tsBuildInfoFile', '.cache/types.tsbuildinfo', ...COMPILER_ARGS],
      env: compilerEnvironment(),
    },
    { name: 'format and lint', command: 'biome', args: ['check', '--error-on-warnings', '.'] },
    { name: 'unused files and exports', command: 'knip', args: ['--cache', '--cache-location', '.cache/knip'] },
    { name: 'import direction', command: process.execPath, args: ['scripts/imports.mjs'] },
  ]
}
