import { type Span as ApiSpan, context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineWork, PoisonError } from '../../../src/index.js'
import { GROUNDS, gate, world } from '../support.js'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const tracer = provider.getTracer('test')
const named = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name)
const one = (name: string): ReadableSpan => {
  const found = named(name)
  expect(found, name).toHaveLength(1)
  return found[0]!
}

describe.each(GROUNDS)('spans on %s ports, with an SDK', (ground) => {
  beforeEach(() => {
    exporter.reset()
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    trace.setGlobalTracerProvider(provider)
  })
  afterEach(() => {
    trace.disable()
    context.disable()
  })

  // W25
  it('go from the request to the enqueue, to the run in another process, to its children', async () => {
    const child = defineWork('child', (_: null, ctx) => ctx.result('c'))
    const parent = defineWork('parent', async (_: null, ctx) => {
      tracer.startSpan('inside the handler').end()
      return ctx.queue([child(null)])
    })
    const { w, until, another } = world(ground, { autoStart: false, work: [parent, child] })
    another({ work: [parent, child] })
    const request = tracer.startSpan('request')
    const handle = context.with(trace.setSpan(context.active(), request), () => w.enqueue(parent(null)))
    request.end()
    await until(handle.group())

    const [enqueued, run, inner, childRun] = [
      one('enqueue parent'),
      one('run parent'),
      one('inside the handler'),
      one('run child'),
    ]
    expect(enqueued.kind).toBe(SpanKind.PRODUCER)
    expect(run.kind).toBe(SpanKind.CONSUMER)
    const traceId = request.spanContext().traceId
    for (const span of [enqueued, run, inner, childRun]) expect(span.spanContext().traceId, span.name).toBe(traceId)
    expect(enqueued.parentSpanContext?.spanId).toBe(request.spanContext().spanId)
    expect(run.parentSpanContext).toMatchObject({ spanId: enqueued.spanContext().spanId, isRemote: true })
    expect(inner.parentSpanContext?.spanId).toBe(run.spanContext().spanId)
    expect(childRun.parentSpanContext?.spanId).toBe(run.spanContext().spanId)
    expect(run.attributes).toMatchObject({
      'work.type': 'parent',
      'work.id': handle.id,
      'work.attempt': 1,
      'work.outcome': 'succeeded',
    })
    expect(named('enqueue child')).toEqual([])
  })

  it('have one run for every attempt, with the outcome of each', async () => {
    const flaky = defineWork(
      'flaky',
      (_: null, ctx) => {
        if (ctx.attempt === 1) throw new Error('not yet')
        throw new PoisonError('never')
      },
      { retry: { attempts: 5, base: 1 } },
    )
    const { w, until } = world(ground, { work: [flaky] })
    await expect(until(w.enqueue(flaky(null)).result())).rejects.toThrow('never')
    const runs = named('run flaky')

    expect(runs.map(({ attributes }) => [attributes['work.outcome'], attributes['work.class']])).toEqual([
      ['retried', 'retryable'],
      ['dead', 'poison'],
    ])
    expect(runs.map(({ status }) => status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.ERROR])
    const enqueued = one('enqueue flaky').spanContext().spanId
    expect(runs.map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual([enqueued, enqueued])
  })

  it('end for what is cancelled, and for an enqueue that fails', async () => {
    const begun = gate()
    const hang = defineWork('hang', () => {
      begun.open()
      return new Promise<never>(() => undefined)
    })
    const { w, until } = world(ground, { work: [hang] })
    const handle = w.enqueue(hang(null))
    const result = expect(handle.result()).rejects.toThrow('cancelled')
    await until(begun.promise)
    await until(handle.cancel())
    await until(result)
    expect(one('run hang').attributes['work.outcome']).toBe('cancelled')

    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    const bad = defineWork('bad', (_: unknown, ctx) => ctx.void())
    await expect(until(w.enqueue(bad(circle)).accepted())).rejects.toThrow('could not be encoded')
    expect(one('enqueue bad').status.code).toBe(SpanStatusCode.ERROR)
  })
})

describe.each(GROUNDS)('a trace on %s ports, without an SDK', (ground) => {
  const W3C = { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`, tracestate: 'vendor=1' }

  it('is carried from the hook to the log context of the run and of its children', async () => {
    const logged: unknown[] = []
    const child = defineWork('child', (_: null, ctx) => ctx.void())
    const parent = defineWork('parent', (_: null, ctx) => ctx.queue([child(null)]))
    const { w, until } = world(ground, {
      work: [parent, child],
      trace: () => W3C,
      logWith: (given, fn) => {
        logged.push(given['trace'])
        return fn()
      },
    })
    await until(w.enqueue(parent(null)).group())

    expect(logged).toEqual([W3C, W3C])
  })

  it('is the parent of a run that another tracer records, and a hook that throws keeps nothing from being enqueued', async () => {
    exporter.reset()
    const noop = defineWork('noop', (_: null, ctx) => ctx.void())
    const { w, until, another, errors } = world(ground, {
      work: [noop],
      autoStart: false,
      trace: () => {
        throw new Error('no context')
      },
    })
    another({ work: [noop], tracer })
    await until(w.enqueue(noop(null)).result())
    expect(errors.map(({ error }) => (error as Error).message)).toEqual(['no context'])
    expect(one('run noop').parentSpanContext).toBeUndefined()

    exporter.reset()
    const traced = another({ work: [noop], autoStart: false, trace: () => W3C })
    await until(traced.enqueue(noop(null)).result())
    expect(one('run noop').parentSpanContext).toMatchObject({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) })
  })
})

describe('what is not sampled', () => {
  it('carries its context all the same, so no child starts another trace', async () => {
    const off = new BasicTracerProvider({ sampler: new AlwaysOffSampler() }).getTracer('off')
    const seen: unknown[] = []
    const noop = defineWork('noop', (_: null, ctx) => ctx.void())
    const { w, until } = world('native', {
      work: [noop],
      tracer: off,
      logWith: (given, fn) => {
        seen.push(given['trace'])
        return fn()
      },
    })
    await until(w.enqueue(noop(null)).result())

    expect(seen).toEqual([{ traceparent: expect.stringMatching(/^00-[\da-f]{32}-[\da-f]{16}-00$/) }])
    const span: ApiSpan | undefined = trace.getActiveSpan()
    expect(span).toBeUndefined()
  })
})
