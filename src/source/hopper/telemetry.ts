import {
  type Attributes,
  type Meter,
  metrics,
  type Context as OtelContext,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { classLabel } from '../../core/failure/failure.js'
import { actionLabel, type Result } from '../../core/stream/result.js'
import type { Message } from '../message/message.js'
import { globalTracer, readTraceContext } from '../trace-context.js'

const LIBRARY = 'millrace'

/** The instruments of one hopper. Without an OpenTelemetry SDK every one of them does nothing. */
export interface SourceTelemetry {
  readonly count: Readonly<Record<SourceCounter, () => void>>
  fetchStalled(ms: number): void
  handled(queueMs: number, handleMs: number): void
  lag(messages: number): void
  inFlight(by: number): void
  /** Undefined where no spans are recorded: the common case costs nothing. */
  startSpan(message: Message, attempt: number): Span | undefined
  startBatchSpan(messages: readonly Message[]): Span | undefined
}

const COUNTERS = {
  received: 'source.received',
  acked: 'source.acked',
  nak: 'source.nak',
  term: 'source.term',
  dropped: 'source.dropped',
  failed: 'source.failed',
  inProgress: 'source.in_progress',
  manual: 'source.manual',
  batches: 'source.batches',
  handlerErrors: 'source.handler_errors',
  settleRetries: 'source.settle_retries',
  abandoned: 'source.abandoned',
  lateResults: 'source.late_results',
  overruns: 'source.overruns',
  overrunsAbandoned: 'source.overruns_abandoned',
  idempotencyErrors: 'source.idempotency_errors',
} as const
export type SourceCounter = keyof typeof COUNTERS

export function sourceTelemetry(given: {
  readonly name: string
  readonly tracer?: Tracer | undefined
  readonly meter?: Meter | undefined
}): SourceTelemetry {
  const meter = given.meter ?? metrics.getMeter(LIBRARY)
  const attributes: Attributes = { 'source.name': given.name }
  const counter = (name: string): (() => void) => {
    const instrument = meter.createCounter(name)
    return () => instrument.add(1, attributes)
  }
  const stalled = meter.createCounter('source.fetch_stalled', { unit: 'ms' })
  const handleMs = meter.createHistogram('source.handle_ms', { unit: 'ms' })
  const queueMs = meter.createHistogram('source.queue_ms', { unit: 'ms' })
  const lag = meter.createGauge('source.lag', { unit: '{message}' })
  const inFlight = meter.createUpDownCounter('source.in_flight', { unit: '{message}' })
  const tracer = given.tracer ?? globalTracer()

  const count = Object.fromEntries(
    Object.entries(COUNTERS).map(([key, name]) => [key, counter(name)]),
  ) as unknown as Record<SourceCounter, () => void> // Made from the keys of COUNTERS, all of them.

  return {
    count,
    fetchStalled: (ms) => stalled.add(ms, attributes),
    handled(queued, handled) {
      queueMs.record(queued, attributes)
      handleMs.record(handled, attributes)
    },
    lag: (messages) => lag.record(messages, attributes),
    inFlight: (by) => inFlight.add(by, attributes),
    startSpan: (message, attempt) =>
      tracer?.startSpan(
        'source.process',
        {
          kind: SpanKind.CONSUMER,
          attributes: {
            'source.name': given.name,
            'source.subject': message.subject,
            'source.partition_key': message.partitionKey,
            'source.attempt': attempt,
          },
        },
        parentOf(message),
      ),
    startBatchSpan: (messages) =>
      tracer?.startSpan('source.batch', {
        kind: SpanKind.CONSUMER,
        attributes: { 'source.name': given.name, 'source.batch_size': messages.length },
        // A batch has as many parents as producers: it is linked to them instead.
        links: messages.flatMap((message) => producerOf(message) ?? []).map((context) => ({ context })),
      }),
  }
}

/** Says what became of the message, on every path, and ends the span. */
export function endSpan(span: Span | undefined, result: Result): void {
  if (span === undefined) return
  span.setAttribute('source.action', actionLabel(result.action))
  span.setAttribute('source.class', classLabel(result.class))
  if (result.action === 'nak' || result.action === 'term') {
    span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(result.error) })
  }
  span.end()
}

/** The same for a batch, which is as bad as its worst member. */
export function endBatchSpan(span: Span | undefined, results: readonly Result[], miscount?: Error): void {
  if (span === undefined) return
  const worst = results.find((r) => r.action === 'term') ?? results.find((r) => r.action === 'nak') ?? results[0]
  if (miscount !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: miscount.message })
  if (worst !== undefined) endSpan(span, worst)
  else span.end()
}

/** The producer's span as the parent of ours. */
function parentOf(message: Message): OtelContext {
  const producer = producerOf(message)
  return producer === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, producer)
}

/** The producer's span, from the W3C headers. */
function producerOf({ headers }: Message): SpanContext | undefined {
  return readTraceContext(headers.get('traceparent'), headers.getAll('tracestate').join(','))
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : error === undefined ? '' : String(error)
}
