import type { OneLineFault } from '../one-line-faults.js'

const next = (test: string) => ({ file: 'test/work/next.test.ts', test })
const gates = (test: string) => ({ file: 'test/work/dependencies.test.ts', test })
const batches = (test: string) => ({ file: 'test/work/batches.test.ts', test })

/** What gates, chains and batches could get wrong, and `@ayepi/work` partly did. */
export const GATE_FAULTS: readonly OneLineFault[] = [
  {
    fault: 'W5 a gate that cannot be met any more waits on',
    file: 'src/work/gate-run.ts',
    find: 'const isFinal = verdict === false && ',
    replace: 'const isFinal = verdict === undefined && ',
    caughtBy: next('S114'),
  },
  {
    fault: 'W5 a dead member is not told of',
    file: 'src/work/settle.ts',
    find: '  effects.push(...tells(envelope, false))\n',
    replace: "  effects.push({ do: 'closeGroup', groupId: envelope.groupId, by: 1 })\n",
    caughtBy: next('W5 ends at once when something deep in a tree has failed'),
  },
  {
    fault: 'W7 a gate over plain ports that has claimed its firing does not fire when it is resumed',
    file: 'src/work/gate-run.ts',
    find: ' || (await store.get(fired)) === id',
    replace: '',
    caughtBy: gates('W7 fires once more work that a crash kept from being queued'),
  },
  {
    fault: 'W7 what a gate queues gets a new id whenever it fires',
    file: 'src/work/stored-tree.ts',
    find: '      queueAt: now,\n',
    replace: '      queueAt: now,\n      id: rules.newId(),\n',
    caughtBy: gates('W7 queues under the ids that were built'),
  },
  {
    fault: 'W19 options of .next go to nobody',
    file: 'src/work/stored-tree.ts',
    find: 'items: storedItems(rules, items, itemOptions, now)',
    replace: 'items: storedItems(rules, items, undefined, now)',
    caughtBy: next('W19 gives options to the next works'),
  },
  {
    fault: 'W19 a nested chain is not part of what comes before',
    file: 'src/work/planner.ts',
    find: '    return [this.#addGate(frontier, link, rest)]\n',
    replace: '    this.#addGate(frontier, link, rest)\n    return begun\n',
    caughtBy: next('counts a nested chain as one'),
  },
  {
    fault: 'W19 a tree is over when the item at its top is',
    file: 'src/work/planner.ts',
    find: '    this.#joinTrees()\n',
    replace: '',
    caughtBy: next('waits for trees of trees'),
  },
  {
    fault: 'W19 instructions in .next need not be returned',
    file: 'src/work/result-tree.ts',
    find: '    for (const { items } of node.links) for (const item of items) if (isNode(item)) walk(item)\n',
    replace: '',
    caughtBy: next('asks for instructions in .next to be returned'),
  },
  {
    fault: 'W26 the time of a gate counts from when it was built',
    file: 'src/work/resolve-gate.ts',
    find: '{ ...input, deadline: now + input.timeout }',
    replace: '{ ...input, deadline: now - 950 + input.timeout }',
    caughtBy: gates('W26'),
  },
  {
    fault: 'W31 an undefined output overwrites the value of the group',
    file: 'src/work/runner.ts',
    find: "value === undefined ? new ResultNode('void') : new ResultNode('result', value)",
    replace: "new ResultNode('result', value)",
    caughtBy: batches('W31'),
  },
  {
    fault: 'a partial batch is dropped when the system stops',
    file: 'src/work/doer-admission.ts',
    find: '    for (const batcher of this.#batchers.values()) batcher.flush()\n',
    replace: '',
    caughtBy: batches('runs what it has gathered when it is stopped'),
  },
]
