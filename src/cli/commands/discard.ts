import { defineBulk } from '../bulk.js'

export const discard = defineBulk({
  name: 'discard',
  verb: 'discard',
  past: 'Discarded',
  isFinal: true,
  summary: 'delete dead items for good',
  examples: [
    ['millrace discard charge/o-3', 'one item'],
    ['millrace discard class:poison before:7d --yes', 'poison items that died more than a week ago'],
  ],
})
