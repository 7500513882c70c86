import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, it, type TestContext } from 'vitest'
import { createMetrics, type Metrics } from '../../src/core/metrics/metrics.js'
import { formatPrometheus } from '../../src/core/metrics/prometheus.js'
import type { StatValue } from '../../src/core/metrics/stat.js'
import { WORK_METRIC_DETAILS, WORK_METRICS, type WorkMetric } from '../../src/core/metrics/work-metrics.js'
import { arbitraryStats } from './arbitrary-stats.js'
import { type PrometheusTools, prometheusTools, run } from './prometheus-tools.js'

/** `promtool check metrics`: 0 is perfect, 1 cannot be read, 3 can be read but breaks a rule of style. */
const PERFECT = 0
const STYLE = 3

let tools: PrometheusTools

beforeAll(async () => {
  tools = await prometheusTools()
})

function promtool(test: TestContext): (text: string) => ReturnType<typeof run> {
  if (tools.kind === 'missing') return test.skip(tools.why)
  const { promtool } = tools
  return (text) => run(promtool, ['check', 'metrics'], text)
}

function workMetrics(): Metrics {
  const metrics = createMetrics({ quantiles: [0.5, 0.99] })
  for (const [key, { kind, description, unit }] of Object.entries(WORK_METRIC_DETAILS)) {
    const name = WORK_METRICS[key as WorkMetric]
    const labels = { type: 'p' }
    if (kind === 'counter') metrics.counter(name, labels, { description, unit }).inc(2)
    else if (kind === 'gauge') metrics.gauge(name, labels, { description, unit }).set(1.5)
    else metrics.summary(name, labels, { description, unit }).observe(7)
  }
  return metrics
}

describe('what promtool says', () => {
  // S123
  it('of our metrics under the names of the document: only that counters should end in _total', async (test) => {
    const check = promtool(test)
    const { code, output } = await check(formatPrometheus(workMetrics().list()))
    const counters = Object.entries(WORK_METRIC_DETAILS).filter(([, { kind }]) => kind === 'counter')
    const expected = counters.map(([key]) => {
      const name = WORK_METRICS[key as WorkMetric].replaceAll('.', '_')
      return `${name} counter metrics should have "_total" suffix`
    })
    expect(output.trim().split('\n').toSorted()).toEqual(expected.toSorted())
    expect(code).toBe(STYLE)
  })

  it('of our metrics with totalSuffix: nothing', async (test) => {
    const check = promtool(test)
    expect(await check(formatPrometheus(workMetrics().list(), { totalSuffix: true }))).toEqual({
      code: PERFECT,
      output: '',
    })
  })

  it('of a text that is cut off: that it cannot be read (so this check can fail)', async (test) => {
    const check = promtool(test)
    const text = formatPrometheus(workMetrics().list())
    expect((await check(text.slice(0, -1))).code).toBe(1)
    expect((await check(`${text}# TYPE work_active counter\n`)).code).toBe(1)
  })

  it('of any names, labels and values: that it can be read', { timeout: 600_000 }, async (test) => {
    const check = promtool(test)
    await fc.assert(
      fc.asyncProperty(arbitraryStats, async (stats) => {
        const text = formatPrometheus(stats)
        const { code, output } = await check(text)
        expect([PERFECT, STYLE], `${output}\n${text}`).toContain(code)
      }),
      { numRuns: 50 },
    )
  })

  it('of a thousand such documents in a few texts: that each can be read', { timeout: 600_000 }, async (test) => {
    const check = promtool(test)
    // Starting promtool takes far longer than its work. Only the first letters of the names lose their oddity by this.
    const many = fc.array(arbitraryStats, { minLength: 100, maxLength: 100 })
    await fc.assert(
      fc.asyncProperty(many, async (documents) => {
        const text = documents.map((stats, at) => formatPrometheus(stats.map(beginning(`d${at}_`)))).join('')
        const { code, output } = await check(text)
        expect([PERFECT, STYLE], `${output}\n${text}`).toContain(code)
      }),
      { numRuns: 10 },
    )
  })
})

/** The same under a name that begins so, because a text may describe a metric in one place only. */
const beginning = (prefix: string) => (stat: StatValue) => ({
  ...stat,
  meta: { ...stat.meta, name: `${prefix}${stat.meta.name}` },
})

describe('a Prometheus server', () => {
  it('scrapes every sample of a registry full of odd names', async (test) => {
    if (tools.kind === 'missing') return test.skip(tools.why)
    if (tools.prometheus === undefined) return test.skip('promtool is on PATH, but prometheus is not')
    const metrics = workMetrics()
    metrics.counter('9 odd.name', { 'a.b': 'x"\\\n\0\r\u2028', a_b: '', le: '1' }, { description: 'odd\n\\\0' }).inc()
    metrics.summary('9_odd_name', { le: 'mine', __name__: 'x' }).observe(Infinity)
    const text = formatPrometheus(metrics.list())
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
    const pages = createServer((_, response) => {
      response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8')
      response.end(text)
    })
    const target = await listen(pages)
    const folder = mkdtempSync(join(tmpdir(), 'millrace-prometheus-'))
    const api = await freePort()
    writeFileSync(
      join(folder, 'config.yml'),
      JSON.stringify({
        global: { scrape_interval: '200ms', scrape_timeout: '200ms' },
        scrape_configs: [{ job_name: 'millrace', static_configs: [{ targets: [`127.0.0.1:${target}`] }] }],
      }),
    )
    const server = spawn(tools.prometheus, [
      `--config.file=${join(folder, 'config.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${api}`,
    ])
    try {
      const ask = async (query: string): Promise<string | undefined> => {
        const url = `http://127.0.0.1:${api}/api/v1/query?query=${encodeURIComponent(query)}`
        const answer = (await (await fetch(url)).json()) as { data: { result: { value: [number, string] }[] } }
        return answer.data.result[0]?.value[1]
      }
      await expect.poll(() => ask('up').catch(() => undefined), { timeout: 60_000, interval: 200 }).toBe('1')
      expect(await ask('scrape_samples_scraped')).toBe(String(samples))
      expect(await ask('scrape_samples_post_metric_relabeling')).toBe(String(samples))
      expect(await ask('work_succeeded{type="p"}')).toBe('2')
      expect(await ask('work_total_time_bucket{type="p",le="10"}')).toBe('1')
    } finally {
      server.kill('SIGKILL')
      await once(server, 'close')
      pages.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  server.close()
  await once(server, 'close')
  return port
}
