import { defineBulk } from '../bulk.js'

export const cancel = defineBulk({
  name: 'cancel',
  verb: 'cancel',
  past: 'Cancelled',
  summary: 'cancel unfinished items; a running handler is notified through its signal',
  examples: [
    ['millrace cancel report/7 --why "not needed any more"', 'one item'],
    ['millrace cancel tag:import-12 --dry-run', 'count them first'],
  ],
})
