import { defineBulk } from '../bulk.js'

export const runNow = defineBulk({
  name: 'run-now',
  verb: 'runNow',
  past: 'Made ready:',
  summary: 'make scheduled, retrying and held items ready to run now',
  examples: [
    ['millrace run-now charge/o-3', 'one item, without waiting for its time'],
    ['millrace run-now state:retrying type:charge --yes', 'every charge that waits for a retry'],
  ],
})
