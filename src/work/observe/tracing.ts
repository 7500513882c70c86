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
import type { Redacted } from '../../core/text/redact.js'
import type { Envelope } from '../../ports/item.js'
import { globalTracer, readTraceContext, writeTraceContext } from '../../source/trace-context.js'
import type { Work } from '../define/work.js'
import type { RunPendingSettlement } from '../settle/pending-settlement.js'

type TraceContext = NonNullable<Envelope['trace']>

/**
 * Spans from enqueue to run to children. Without a tracer each of these returns undefined. The global tracer may be registered at
 * any time, so it is looked up until there is one.
 */
export class Tracing {
  #tracer: Tracer | undefined

  constructor(tracer: Tracer | undefined) {
    this.#tracer = tracer
  }

  /** The span of an enqueue, and what its item carries. A child of the active span, unless it is a root. */
  enqueue(work: Work, isRoot = false): { readonly span: Span; readonly trace?: TraceContext } | undefined {
    const tracer = this.#find()
    if (tracer === undefined) return undefined
    const span = tracer.startSpan(`enqueue ${work.type}`, {
      kind: SpanKind.PRODUCER,
      attributes: { 'work.type': work.type, 'work.id': work.id, 'work.group': work.id },
      root: isRoot,
    })
    const carried = writeTraceContext(span.spanContext())
    return carried === undefined ? { span } : { span, trace: carried }
  }

  /** The span of a run: a child of the enqueue, or of the run that queued it, in whatever process. */
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

  /** The span of several items that run together, linked to the spans that queued them. */
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

/** Calls `fn` with this span as the active one: what it starts or enqueues belongs to the span. */
export function within<T>(span: Span, fn: () => T): T {
  return active.with(trace.setSpan(active.active(), span), fn)
}

/** The item as its children see it: they belong to the run that queued them. */
export function tracedBy<T extends { readonly envelope: Envelope }>(item: T, span: Span | undefined): T {
  const carried = span === undefined ? undefined : writeTraceContext(span.spanContext())
  return carried === undefined ? item : { ...item, envelope: { ...item.envelope, trace: carried } }
}

/** Ends the span of an enqueue with what became of it. */
export function endEnqueueSpan(span: Span, accepted: Promise<unknown>): void {
  accepted.then(
    () => span.end(),
    (error: unknown) => {
      span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) })
      span.end()
    },
  )
}

/** Ends the span of a run with its outcome, whether or not that gets written. */
export function endRunSpan(span: Span, { summary, ran }: RunPendingSettlement, redacted: Redacted): void {
  span.setAttribute('work.outcome', summary.kind)
  if ('class' in summary) span.setAttributes({ 'work.class': summary.class, 'work.rule': summary.rule })
  if ('error' in summary) {
    const message = redacted('error', summary.error, ran.item.envelope)
    span.setStatus({ code: SpanStatusCode.ERROR, message })
  }
  span.end()
}

/** Ends the span of a batch with its worst outcome. */
export async function endBatchSpan(
  span: Span,
  running: Promise<readonly RunPendingSettlement[]>,
  redacted: Redacted,
): Promise<readonly RunPendingSettlement[]> {
  const settlings = await running
  const worst =
    settlings.find(({ summary }) => summary.kind === 'dead') ??
    settlings.find(({ summary }) => summary.kind !== 'succeeded')
  const shown = worst ?? settlings[0]
  if (shown === undefined) span.end()
  else endRunSpan(span, shown, redacted)
  return settlings
}

function parentOf(carried: TraceContext | undefined): OtelContext {
  const context = readTraceContext(carried?.traceparent, carried?.tracestate)
  return context === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, context)
}
