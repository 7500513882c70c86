import { defineBulk } from '../define-bulk.js'

export const discard = defineBulk({
  name: 'discard',
  verb: 'discard',
  past: 'Discarded',
  isFinal: true,
  summary: 'remove dead items for good',
  examples: [
    ['millrace discard charge/o-3', 'one item'],
    ['millrace discard class:poison before:7d --yes', 'poison that has been lying for a week'],
  ],
})
