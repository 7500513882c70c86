// An enqueue, and the line about it.

/**
 * The handle, once the item was accepted and that is on disk. Nothing if this process cannot know: it may have happened, but
 * was not promised.
 * @param {import('millrace').WorkSystem} w
 * @param {import('./truth-log.mjs').TruthLog} log
 * @param {import('./orders.mjs').Order} order
 */
export async function enqueueTruly(w, log, { id, work, expected }) {
  const handle = w.enqueue(work)
  try {
    await handle.accepted()
  } catch (error) {
    console.error(id, error)
    await log.write({ is: 'unsure', id, at: Date.now() })
    return undefined
  }
  await log.write({ is: 'accepted', id, at: Date.now(), ...expected })
  // In a box: a handle is thenable, and a promise would wait for its group.
  return { handle }
}
