/** A session, as its provider keeps it in a book. */
export interface SessionDoc {
  readonly id: string
  readonly status: string
  readonly error?: string
  readonly output?: unknown
  readonly conversationId?: string
}

/** What a provider of sessions may offer: the apparatus that owns the book of sessions. */
export interface SessionCanceller {
  cancel(sessionId: string, options: { readonly reason: string }): Promise<unknown> | unknown
}

const ENDED: readonly string[] = ['completed', 'failed', 'timeout', 'cancelled']

export const isSessionEnded = (session: SessionDoc): boolean => ENDED.includes(session.status)

/** The yields of a session whose design has no `collect`. */
export function sessionYields(session: SessionDoc): Readonly<Record<string, unknown>> {
  const { id, status, output, conversationId } = session
  return {
    sessionId: id,
    sessionStatus: status,
    ...(output === undefined ? {} : { output }),
    ...(conversationId === undefined ? {} : { conversationId }),
  }
}
