import { context, metrics, type Span, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterEach, describe, expect, it } from 'vitest'
import { ack, inProgress, manual, nak, skip, term } from '../../../src/core/stream/result.js'
import { jsonCodec } from '../../../src/source/codecs/codec-registry.js'
import { Hopper } from '../../../src/source/hopper/hopper.js'
import type { HopperOptions } from '../../../src/source/hopper/hopper-options.js'
import { sourceTelemetry } from '../../../src/source/hopper/telemetry.js'
import type { MemMessageSpec } from '../../../src/source/inlets/memory/mem-message.js'
import { FakeClock } from '../../../src/testing/fake-clock.js'
import { Harness } from '../../../src/testing/harness.js'
import { held, listed, messageOf, numbered, scripted, textOf } from './support.js'

const boom = new Error('boom')
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'

/** The real SDK, recording into memory. */
function sdk() {
  const spans = new InMemorySpanExporter()
  const tracing = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 })
  const metering = new MeterProvider({ readers: [reader] })
  return {
    options: { tracer: tracing.getTracer('test'), meter: metering.getMeter('test') },
    tracing,
    metering,
    spans: () => spans.getFinishedSpans(),
    /** Every value by name, summed over attributes; histograms by their count. */
    async values(): Promise<Record<string, number>> {
      await reader.forceFlush()
      const values: Record<string, number> = {}
      for (const resource of exporter.getMetrics().slice(-1)) {
        for (const { metrics: all } of resource.scopeMetrics) {
          for (const { descriptor, dataPoints } of all) {
            for (const { value, attributes } of dataPoints) {
              expect(attributes).toEqual({ 'source.name': 'shop' })
              values[descriptor.name] =
                (values[descriptor.name] ?? 0) +
                (typeof value === 'number' ? value : (value as { count: number }).count)
            }
          }
        }
      }
      return values
    },
  }
}

async function harnessed(options: HopperOptions, messages: readonly MemMessageSpec[]) {
  const otel = sdk()
  const harness = new Harness({ hopper: { name: 'shop', ...otel.options, ...options }, messages })
  return { otel, harness }
}

afterEach(() => {
  trace.disable()
  metrics.disable()
  context.disable()
})

describe('counters', () => {
  // S44
  it('distinguish received, acked, nak, term and dropped, after the settlement', async () => {
    const { otel, harness } = await harnessed({}, numbered(6))
    const results = [ack(), nak(boom), term(boom), skip(), inProgress(), manual()]
    await harness.run(async (_ctx, message) => {
      await harness.clock.sleep(5)
      return results[Number(textOf(message))] ?? ack()
    })
    expect(await otel.values()).toMatchObject({
      'source.received': 6,
      'source.acked': 1,
      'source.nak': 1,
      'source.term': 1,
      'source.dropped': 1,
      'source.in_progress': 1,
      'source.manual': 1,
      'source.in_flight': 0,
      'source.handle_ms': 6,
      'source.queue_ms': 6,
    })
  })

  // S42, W11
  it('count a settlement that failed as failed, and not as acked', async () => {
    const otel = sdk()
    const clock = new FakeClock()
    const sub = scripted({ next: listed([messageOf()]), settle: () => Promise.reject(new Error('away')) })
    const running = new Hopper({ clock, name: 'shop', ...otel.options }).run(sub, () => ack())
    await clock.advance(1_000)
    await running
    const values = await otel.values()
    expect(values).toMatchObject({
      'source.received': 1,
      'source.failed': 1,
      'source.settle_retries': 2,
      'source.in_flight': 0,
    })
    expect(values['source.acked']).toBeUndefined()
  })

  it('count errors of handlers, late results, batches and what was abandoned', async () => {
    const { otel, harness } = await harnessed({ handlerTimeoutMs: 10 }, numbered(2))
    await harness.run(async (_ctx, message) => {
      if (textOf(message) === '0') throw boom
      await harness.clock.sleep(11)
      return ack()
    })
    await harness.clock.advance(100)
    expect(await otel.values()).toMatchObject({ 'source.handler_errors': 1, 'source.late_results': 1, 'source.nak': 2 })

    const batches = await harnessed({ batch: { size: 2 } }, numbered(5))
    await batches.harness.runBatch((_ctx, messages) => messages.map(() => ack()))
    expect(await batches.otel.values()).toMatchObject({ 'source.batches': 3, 'source.acked': 5 })

    const left = sdk()
    const clock = new FakeClock()
    const hopper = new Hopper({ clock, name: 'shop', deadlineMs: 0, abortGraceMs: 0, ...left.options })
    const running = hopper.run(scripted({ next: listed([messageOf()]) }), () => new Promise(() => undefined))
    await clock.settle()
    void hopper.close()
    await clock.advance(1)
    await running
    expect(await left.values()).toMatchObject({ 'source.abandoned': 1, 'source.in_flight': 0 })
  })

  // S44
  it('show the lag, and the time for which the window was full', async () => {
    const otel = sdk()
    const clock = new FakeClock()
    const gate = held()
    let n = 0
    const sub = scripted({
      next: async (signal) => {
        n += 1
        if (n <= 2) return messageOf({ partitionKey: String(n) })
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
      can: { lagReporter: { lag: async () => 7 } },
    })
    const hopper = new Hopper({ clock, name: 'shop', concurrency: 2, maxInFlight: 2, ...otel.options })
    const running = hopper.run(sub, async () => {
      await gate.promise
      return ack()
    })
    await clock.advance(2_500)
    expect(await otel.values()).toMatchObject({ 'source.lag': 7, 'source.in_flight': 2 })
    gate.release()
    await hopper.close()
    await running
    expect((await otel.values())['source.fetch_stalled']).toBe(2_500)
  })
})

const attributesOf = (span: ReadableSpan | undefined) => span?.attributes

describe('the span of a message', () => {
  it('is named source.process and says what it was about and what became of it', async () => {
    const { otel, harness } = await harnessed({}, [{ key: 'k', subject: 'orders' }])
    await harness.run(() => nak(boom))
    const [span] = otel.spans()
    expect(span?.name).toBe('source.process')
    expect(attributesOf(span)).toEqual({
      'source.name': 'shop',
      'source.subject': 'orders',
      'source.partition_key': 'k',
      'source.attempt': 1,
      'source.action': 'nak',
      'source.class': 'retryable',
    })
    expect(span?.status).toEqual({ code: 2, message: 'boom' })
  })

  // W38
  it('has action and class on every path', async () => {
    const { otel, harness } = await harnessed({ codec: jsonCodec(), maxDeliveries: 1 }, [
      ...['1', '2', '3', '4', '5', '{bad'].map((value) => ({ value })),
      { value: '6', headers: [['crucible-retry-attempt', '9']] as const },
    ])
    await harness.run((_ctx, message) => {
      switch (textOf(message)) {
        case '1':
          return ack()
        case '2':
          throw boom
        case '3':
          return undefined as never
        case '4':
          return inProgress()
        default:
          return skip()
      }
    })
    const labels = otel.spans().map((span) => [span.attributes['source.action'], span.attributes['source.class']])
    expect(labels).toEqual([
      ['ack', 'unclassified'],
      ['nak', 'retryable'],
      ['nak', 'retryable'],
      ['in_progress', 'unclassified'],
      ['ack', 'drop'],
      ['term', 'poison'],
      ['term', 'poison'],
    ])
    expect(otel.spans().map((span) => span.attributes['source.attempt'])).toEqual([1, 1, 1, 1, 1, 1, 9])
  })

  it('has the producer as its parent, from traceparent', async () => {
    const traceparent = `00-${TRACE}-${PARENT}-01`
    const { otel, harness } = await harnessed({}, [{ headers: { traceparent, tracestate: 'vendor=1' } }, {}])
    await harness.run(() => ack())
    const [child, root] = otel.spans()
    expect(child?.spanContext().traceId).toBe(TRACE)
    expect(child?.parentSpanContext).toMatchObject({ spanId: PARENT, isRemote: true, traceFlags: 1 })
    expect(child?.parentSpanContext?.traceState?.get('vendor')).toBe('1')
    expect(root?.parentSpanContext).toBeUndefined()
    expect(root?.spanContext().traceId).not.toBe(TRACE)
  })

  it.each([
    ['nonsense', 'hello'],
    ['an invalid version', `ff-${TRACE}-${PARENT}-01`],
    ['no trace', `00-${'0'.repeat(32)}-${PARENT}-01`],
    ['no span', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['more than version 00 has', `00-${TRACE}-${PARENT}-01-more`],
  ])('is a root when traceparent is %s', async (_name, traceparent) => {
    const { otel, harness } = await harnessed({}, [{ headers: { traceparent } }])
    await harness.run(() => ack())
    expect(otel.spans()[0]?.parentSpanContext).toBeUndefined()
  })

  it('reads a later version of traceparent as far as it knows it', async () => {
    const { otel, harness } = await harnessed({}, [{ headers: { traceparent: `01-${TRACE}-${PARENT}-00-more` } }])
    await harness.run(() => ack())
    // Not sampled by its producer, hence not recorded.
    expect(otel.spans()).toEqual([])
  })

  it('is active inside the handler, so that what it starts becomes its child', async () => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    const { otel, harness } = await harnessed(
      { concurrency: 4 },
      numbered(3, 'k').map((m, i) => ({ ...m, key: `k${i}` })),
    )
    await harness.run(async (_ctx, message) => {
      await harness.clock.sleep(3 - Number(textOf(message)))
      const inner: Span = otel.options.tracer.startSpan(`inner-${textOf(message)}`)
      inner.end()
      return ack()
    })
    for (const n of ['0', '1', '2']) {
      const inner = otel.spans().find((span) => span.name === `inner-${n}`)
      const outer = otel.spans().find((span) => span.attributes['source.partition_key'] === `k${n}`)
      expect(inner?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId)
    }
  })

  it('is one over all tries of a strict lane', async () => {
    const { otel, harness } = await harnessed({ ordering: 'strict' }, numbered(1))
    let runs = 0
    await harness.run(() => {
      runs += 1
      return runs < 3 ? nak(boom) : ack()
    })
    expect(otel.spans().map((span) => span.attributes['source.action'])).toEqual(['ack'])
  })
})

describe('the span of a batch', () => {
  it('is named source.batch, knows its size and its worst result, and links to the producers', async () => {
    const traceparent = `00-${TRACE}-${PARENT}-01`
    const { otel, harness } = await harnessed({ batch: { size: 3 } }, [{ headers: { traceparent } }, {}, {}])
    await harness.runBatch(() => [ack(), nak(boom), ack()])
    const [span] = otel.spans()
    expect(span?.name).toBe('source.batch')
    expect(attributesOf(span)).toEqual({
      'source.name': 'shop',
      'source.batch_size': 3,
      'source.action': 'nak',
      'source.class': 'retryable',
    })
    expect(span?.status.code).toBe(2)
    expect(span?.links.map((link) => link.context.spanId)).toEqual([PARENT])
  })

  it('is an error when the number of results is wrong, also when there are too many', async () => {
    for (const results of [[ack()], [ack(), ack(), ack()]]) {
      const { otel, harness } = await harnessed({ batch: { size: 2 } }, numbered(2))
      await harness.runBatch(() => results)
      expect(otel.spans()[0]?.status).toMatchObject({ code: 2, message: expect.stringContaining('2 messages') })
    }
  })
})

describe('a hopper without its own tracer', () => {
  it('uses the SDK that the program registered', async () => {
    const otel = sdk()
    trace.setGlobalTracerProvider(otel.tracing)
    metrics.setGlobalMeterProvider(otel.metering)
    const harness = new Harness({ hopper: { name: 'shop' }, messages: numbered(2) })
    await harness.run(() => ack())
    expect(otel.spans().map((span) => span.name)).toEqual(['source.process', 'source.process'])
    expect(await otel.values()).toMatchObject({ 'source.acked': 2 })
  })

  it('has no spans at all when there is none', () => {
    const telemetry = sourceTelemetry({ name: 'shop' })
    expect(telemetry.startSpan(messageOf(), 1)).toBeUndefined()
    expect(telemetry.startBatchSpan([messageOf()])).toBeUndefined()
  })
})
