import {
  createTraceState,
  isSpanContextValid,
  ProxyTracerProvider,
  type SpanContext,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'

const LIBRARY = 'millrace'

/** The tracer of the SDK that the program registered; undefined when it registered none. */
export function globalTracer(): Tracer | undefined {
  const provider = trace.getTracerProvider()
  if (provider instanceof ProxyTracerProvider && provider.getDelegateTracer(LIBRARY) === undefined) return undefined
  return provider.getTracer(LIBRARY)
}

// Version 00 ends after the flags; a later one may say more. ff is no version.
const TRACEPARENT = /^(?!ff)(?:00|([\da-f]{2}))-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const ALL_ZERO = /^0+$/

/** A span of another process, from W3C `traceparent` and `tracestate`. Read here, so that it works without a global propagator. */
export function readTraceContext(traceparent: string | undefined, tracestate = ''): SpanContext | undefined {
  const found = TRACEPARENT.exec(traceparent?.trim().toLowerCase() ?? '')
  if (found === null) return undefined
  const [, laterVersion, traceId = '', spanId = '', flags = '', more] = found
  if (ALL_ZERO.test(traceId) || ALL_ZERO.test(spanId) || (laterVersion === undefined && more !== undefined)) {
    return undefined
  }
  return {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
    ...(tracestate === '' ? {} : { traceState: createTraceState(tracestate) }),
  }
}

/** A span as W3C text, for the process that continues it. Undefined for a span that is none. */
export function writeTraceContext(
  context: SpanContext,
): { readonly traceparent: string; readonly tracestate?: string } | undefined {
  if (!isSpanContextValid(context)) return undefined
  const flags = (context.traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')
  const traceparent = `00-${context.traceId}-${context.spanId}-${flags}`
  const tracestate = context.traceState?.serialize()
  return tracestate === undefined || tracestate === '' ? { traceparent } : { traceparent, tracestate }
}
