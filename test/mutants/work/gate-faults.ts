import type { OneLineFault } from '../one-line-faults.js'

const next = (test: string) => ({ file: 'test/work/next.test.ts', test })
const gates = (test: string) => ({ file: 'test/work/dependencies.test.ts', test })
const batches = (test: string) => ({ file: 'test/work/batches.test.ts', test })

/** What gates, chains and batches could get wrong, and `@ayepi/work` partly did. */
export const GATE_FAULTS: readonly OneLineFault[] = [
  {
    // W5
    fault: 'a gate that cannot be met any more waits on',
    file: 'src/work/run/run-gate.ts',
    find: 'const isFinal = verdict === false && ',
    replace: 'const isFinal = verdict === undefined && ',
    caughtBy: next('ends immediately, with its group, when what came before has failed'),
  },
  {
    // W5
    fault: 'a dead member is not reported',
    file: 'src/work/settle/settle.ts',
    find: '  effects.push(...endEffects(envelope, false))\n',
    replace: "  effects.push({ do: 'leaveGroup', groupId: envelope.groupId, count: 1 })\n",
    caughtBy: next('ends immediately when something deep in a tree has failed'),
  },
  {
    // W7
    fault: 'a gate over plain ports that has claimed its firing does not fire when it is resumed',
    file: 'src/work/run/run-gate.ts',
    find: ' || (await store.get(fired)) === id',
    replace: '',
    caughtBy: gates('fires once more work that a crash kept from being queued'),
  },
  {
    // W7
    fault: 'what a gate queues gets a new id whenever it fires',
    file: 'src/work/settle/stored-tree.ts',
    find: '      queueAt: now,\n',
    replace: '      queueAt: now,\n      id: rules.newId(),\n',
    caughtBy: gates('queues under the ids that were built'),
  },
  {
    // W19
    fault: 'options of .next are dropped',
    file: 'src/work/settle/stored-tree.ts',
    find: 'items: storedItems(rules, items, itemOptions, now)',
    replace: 'items: storedItems(rules, items, undefined, now)',
    caughtBy: next('gives options to the next works'),
  },
  {
    // W19
    fault: 'a nested chain is not part of what comes before',
    file: 'src/work/settle/plan-children.ts',
    find: '    return [this.#addGate(frontier, link, rest)]\n',
    replace: '    this.#addGate(frontier, link, rest)\n    return begun\n',
    caughtBy: next('counts a nested chain as one'),
  },
  {
    // W19
    fault: 'a tree is over when the item at its top is',
    file: 'src/work/settle/plan-children.ts',
    find: '    this.#joinTrees()\n',
    replace: '',
    caughtBy: next('waits for trees of trees'),
  },
  {
    // W19
    fault: 'instructions in .next need not be returned',
    file: 'src/work/settle/result-tree.ts',
    find: '    for (const { items } of node.links) for (const item of items) if (isNode(item)) walk(item)\n',
    replace: '',
    caughtBy: next('asks for instructions in .next to be returned'),
  },
  {
    // W26
    fault: 'the time of a gate counts from when it was built',
    file: 'src/work/enqueue/resolve-gate.ts',
    find: '{ ...input, deadline: now + input.timeout }',
    replace: '{ ...input, deadline: now - 950 + input.timeout }',
    caughtBy: gates('takes its time from when it is enqueued, by the clock of the system'),
  },
  {
    // W31
    fault: 'an undefined output overwrites the value of the group',
    file: 'src/work/settle/result-tree.ts',
    find: 'if (returned === undefined) return NO_RESULT',
    replace: "if (returned === undefined) return new ResultNode('result', returned)",
    caughtBy: batches('contributes nothing where the output is undefined'),
  },
  {
    fault: 'a partial batch is dropped when the system stops',
    file: 'src/work/worker/doer-admission.ts',
    find: '    for (const batcher of this.#batchers.values()) batcher.flush()\n',
    replace: '',
    caughtBy: batches('runs what it has gathered when it is stopped'),
  },
]
