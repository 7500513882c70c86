import {
  context as active,
  type Context as OtelContext,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { unreachable } from '../../core/unreachable.js'
import type { Envelope } from '../../ports/item.js'
import { globalTracer, readTraceContext, writeTraceContext } from '../../source/trace-context.js'
import type { Told } from '../settle.js'
import type { Work } from '../work.js'

type TraceContext = NonNullable<Envelope['trace']>

/**
 * Spans from enqueue to run to children. Where nobody records spans each of these yields undefined, and costs a look at the
 * global provider. That may be registered at any time, so that it is looked for until it is there.
 */
export class Tracing {
  #tracer: Tracer | undefined

  constructor(tracer: Tracer | undefined) {
    this.#tracer = tracer
  }

  /** The span of an enqueue, and what its item carries. A child of whatever goes on around it, unless it is a root. */
  enqueue(
    work: Work,
    groupId: string,
    isRoot = false,
  ): { readonly span: Span; readonly trace?: TraceContext } | undefined {
    const tracer = this.#find()
    if (tracer === undefined) return undefined
    const span = tracer.startSpan(`enqueue ${work.type}`, {
      kind: SpanKind.PRODUCER,
      attributes: { 'work.type': work.type, 'work.id': work.id, 'work.group': groupId },
      root: isRoot,
    })
    const carried = writeTraceContext(span.spanContext())
    return carried === undefined ? { span } : { span, trace: carried }
  }

  /** The span of a run: a child of the enqueue, or of the run that queued it, wherever that was. */
  run({ id, type, groupId, attempt, trace: carried }: Envelope): Span | undefined {
    return this.#find()?.startSpan(
      `run ${type}`,
      {
        kind: SpanKind.CONSUMER,
        attributes: { 'work.type': type, 'work.id': id, 'work.group': groupId, 'work.attempt': attempt },
      },
      parentOf(carried),
    )
  }

  /** The span of several items that run together. It has as many parents as they have, so it is linked to them. */
  batch(type: string, deliveries: readonly { readonly item: { readonly envelope: Envelope } }[]): Span | undefined {
    const tracer = this.#find()
    if (tracer === undefined) return undefined
    const links = deliveries.flatMap(({ item }) => {
      const { trace: carried } = item.envelope
      const context = readTraceContext(carried?.traceparent, carried?.tracestate)
      return context === undefined ? [] : [{ context }]
    })
    const attributes = { 'work.type': type, 'work.batch_size': deliveries.length }
    return tracer.startSpan(`run ${type}`, { kind: SpanKind.CONSUMER, attributes, links }, ROOT_CONTEXT)
  }

  #find(): Tracer | undefined {
    this.#tracer ??= globalTracer()
    return this.#tracer
  }
}

/** Calls `fn` with this span as the active one, so that what it starts or enqueues belongs to it. */
export function within<T>(span: Span, fn: () => T): T {
  return active.with(trace.setSpan(active.active(), span), fn)
}

/** The item as its children see it: they belong to the run that queued them. */
export function tracedBy<T extends { readonly envelope: Envelope }>(item: T, span: Span | undefined): T {
  const carried = span === undefined ? undefined : writeTraceContext(span.spanContext())
  return carried === undefined ? item : { ...item, envelope: { ...item.envelope, trace: carried } }
}

/** Says what became of an enqueue, and ends its span. */
export function endEnqueueSpan(span: Span, accepted: Promise<unknown>): void {
  accepted.then(
    () => span.end(),
    (error: unknown) => {
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) })
      span.end()
    },
  )
}

/** Says what a run came to, and ends its span. Whether that gets written is another matter. */
export function endRunSpan(span: Span, told: Told): void {
  span.setAttribute('work.outcome', told.kind)
  switch (told.kind) {
    case 'retried':
    case 'dead':
      span.setAttribute('work.class', told.class)
      span.setAttribute('work.rule', told.rule)
      span.setStatus({ code: SpanStatusCode.ERROR, message: told.error })
      break
    case 'expired':
    case 'cancelled':
      span.setStatus({ code: SpanStatusCode.ERROR, message: told.error })
      break
    case 'succeeded':
    case 'deferred':
    case 'released':
      break
    default:
      unreachable(told)
  }
  span.end()
}

/** Says what a batch came to, which is as bad as its worst member, and ends its span. */
export async function endBatchSpan<T extends { readonly told: Told }>(
  span: Span,
  running: Promise<readonly T[]>,
): Promise<readonly T[]> {
  const settlings = await running
  const worst =
    settlings.find(({ told }) => told.kind === 'dead') ?? settlings.find(({ told }) => told.kind !== 'succeeded')
  const shown = worst ?? settlings[0]
  if (shown === undefined) span.end()
  else endRunSpan(span, shown.told)
  return settlings
}

function parentOf(carried: TraceContext | undefined): OtelContext {
  const context = readTraceContext(carried?.traceparent, carried?.tracestate)
  return context === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, context)
}
