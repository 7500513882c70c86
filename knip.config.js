import { doors } from './scripts/lib/doors.mjs'

/** @type {import('knip').KnipConfig} */
export default {
  // What a door lists is used by users; everything else must be used by us. `!` marks what also runs in production.
  entry: [
    ...doors().map((door) => `${door.source}!`),
    // The command, which package.json names in `bin`.
    'src/cli/main.ts!',
    'scripts/*.mjs',
    'bench/*.bench.ts',
    'bench/lib/contender-process.mjs',
    'examples/*.ts',
    'examples/service/{web,worker}.ts',
    'examples/fulfilment/{worker,web}.ts',
    'test/types/*.test-d.ts',
    'test/simulation/main.ts',
    // Loaded by the name of the backend that a run is for.
    'test/work/grounds/*.ts',
    'test/chaos/main.ts',
    'test/load/{main,worker}.ts',
    'test/guild/stacks/processes/{listener,transfer,versions}.ts',
    'test/chaos/{worker,producer,waiter,locker}.mjs',
    'test/guild/spider/processes/*.mjs',
    'test/source/brokers/consumer.mjs',
  ],
  project: ['src/**/*.{ts,tsx}!', 'scripts/**/*.mjs', 'test/**/*.ts', 'bench/**/*.{ts,mjs}', 'examples/**/*.ts'],
  // Programs of the system; those of npm packages must be listed in package.json.
  ignoreBinaries: ['apt-get', 'mount', 'umount'],
  // Called by its path in test/package, since it has no API of its own.
  ignoreDependencies: ['@arethetypeswrong/cli'],
  // A type that only its own file names is still part of what that file says.
  ignoreExportsUsedInFile: { interface: true, type: true },
}
