import type { OneLineFault } from '../one-line-faults.js'

const suite = (test: string) => ({ file: 'test/guild/clerk/scenarios.test.ts', test })
const host = (file: string, test: string) => ({ file: `test/guild/host/${file}.test.ts`, test })

/** What a host and a Clerk could get wrong, most of it as it was in the system that they follow. */
export const CLERK_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'a cascade takes one step, legal or not',
    file: 'src/guild/clerk/families/family.ts',
    find: 'of path.entries()) {',
    replace: 'of [action.transition].entries()) {',
    caughtBy: suite('walk the shortest legal path'),
  },
  {
    fault: 'each generation of a family nests one write deeper',
    file: 'src/guild/clerk/families/family.ts',
    find: 'if (above?.moving === entry.id) {',
    replace: "if (above?.moving === '') {",
    caughtBy: suite('are not limited to sixteen generations'),
  },
  {
    fault: 'a writ is checked in one transaction and written in another',
    file: 'src/guild/clerk/context.ts',
    find: 'return this.#stacks.transaction(fn)',
    replace: 'return fn()',
    caughtBy: suite('one step wins when several are tried at the same time'),
  },
  {
    fault: 'a slot replaces those of others',
    file: 'src/guild/clerk/writs/status.ts',
    find: '{ ...status, [pluginId]: value }',
    replace: '{ [pluginId]: value }',
    caughtBy: suite('each plugin has its own'),
  },
  {
    fault: 'a transition writes what the Clerk manages',
    file: 'src/guild/clerk/writs/transition.ts',
    find: ' && !MANAGED.includes(name)',
    replace: '',
    caughtBy: suite('fields go with a step'),
  },
  {
    fault: 'the end of a child does not write its parent',
    file: 'src/guild/clerk/context.ts',
    find: 'await this.writs.patch(writ.id, {})',
    replace: 'void writ',
    caughtBy: { file: 'test/guild/clerk/postgres.server.test.ts', test: 'follow the last two children' },
  },
  {
    fault: 'the guild of the process hides that of the context',
    file: 'src/guild/host/current.ts',
    find: 'bound.getStore() ?? running.at(-1)',
    replace: 'running.at(-1) ?? bound.getStore()',
    caughtBy: host('start-and-stop', 'each are found in their own context'),
  },
  {
    fault: 'apparatuses are stopped in the order of their start',
    file: 'src/guild/host/create-guild.ts',
    find: 'this.#started.toReversed()',
    replace: '[...this.#started]',
    caughtBy: host('scenarios', 'stops in reverse order'),
  },
  {
    fault: 'a write of the configuration takes no notice of others',
    file: 'src/guild/host/config-file.ts',
    find: 'const onDisk = read(path) ?? {}',
    replace: 'const onDisk = current',
    caughtBy: host('loading', 'keeps what others wrote meanwhile'),
  },
]
