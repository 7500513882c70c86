import { defineBulk } from '../define-bulk.js'

export const cancel = defineBulk({
  name: 'cancel',
  verb: 'cancel',
  past: 'Cancelled',
  summary: 'end unfinished items as cancelled; what runs is told by its signal',
  examples: [
    ['millrace cancel report/7 --why "not wanted any more"', 'one item'],
    ['millrace cancel tag:import-12 --dry-run', 'how many that would be'],
  ],
})
