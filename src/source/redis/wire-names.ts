// Names that stand in streams. Those of Crucible are kept, so that its producers and consumers can share a stream with ours.

/** The field with the routing key. */
export const KEY_FIELD = 'crucible-key'
/** The field with the payload. */
export const VALUE_FIELD = 'value'
/** How the name of every consumer that we name ends: what tells ours from others. */
export const CONSUMER_MARK = 'millrace:'
