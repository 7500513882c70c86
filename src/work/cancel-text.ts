/** The error text of a cancelled item. */
export function cancelText(why: string): string {
  return why === '' ? 'cancelled' : `cancelled: ${why}`
}

/** Why an item was cancelled, from its error text; empty if nobody gave a reason. */
export function cancelReason(error: string | undefined): string {
  return error?.replace(/^cancelled(?:: )?/, '') ?? ''
}
