import type { FailureClass } from '../core/failure.js'

interface OfItem {
  readonly id: string
  readonly type: string
  readonly groupId: string
  readonly attempt: number
  readonly at: number
}

/** What happens to items, told once the thing itself is durable. Per item in this order; `group-done` comes last. */
export type WorkEvent =
  | (OfItem & { readonly kind: 'queued'; readonly startAt: number })
  | (OfItem & { readonly kind: 'started' })
  | (OfItem & { readonly kind: 'succeeded'; readonly result: unknown })
  | (OfItem & {
      readonly kind: 'failed'
      readonly error: string
      readonly willRetry: boolean
      readonly class: FailureClass
      readonly rule: string
    })
  | (OfItem & { readonly kind: 'deferred'; readonly runAt: number })
  | (OfItem & { readonly kind: 'expired'; readonly deadline: number })
  | (OfItem & { readonly kind: 'cancelled'; readonly reason: string })
  | { readonly kind: 'group-done'; readonly groupId: string; readonly result: unknown; readonly at: number }
