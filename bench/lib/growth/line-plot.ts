export interface Line {
  readonly name: string
  /** Pairs of x and y. */
  readonly points: readonly (readonly [x: number, y: number])[]
  /** Which of the colours, so that it has the same in every plot. Default: its place among the lines. */
  readonly colour?: number
}

export interface Plot {
  readonly title: string
  readonly x: string
  readonly y: string
  readonly lines: readonly Line[]
}

const WIDTH = 720
const HEIGHT = 400
const LEFT = 70
const RIGHT = 130
const TOP = 54
const BOTTOM = 50
const COLOURS = ['#1b6ca8', '#c8553d', '#3d8361', '#7b4b94', '#8a6d1b', '#555555']

/**
 * Lines over a logarithmic x, as an SVG picture. The y axis begins at zero, so that a fall looks as large as it is. An x of 0, which a
 * logarithm does not have, stands one place left of the rest.
 */
export function linePlot({ title, x, y, lines }: Plot): string {
  const points = lines.flatMap(({ points }) => points)
  if (points.length === 0) throw new Error(`nothing to plot: ${title}`)
  const xs = [...new Set(points.map(([value]) => value))].sort((a, b) => a - b)
  const top = niceCeiling(Math.max(...points.map(([, value]) => value)))
  const placeOf = horizontal(xs)
  const heightOf = (value: number) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM)
  const right = WIDTH - RIGHT
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}: ${escaped(y)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    text(LEFT, 22, title, 'font-size="15" font-weight="bold"'),
  ]
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const at = fixed(heightOf(top * share))
    parts.push(`<line x1="${LEFT}" y1="${at}" x2="${right}" y2="${at}" stroke="#dddddd"/>`)
    parts.push(text(LEFT - 6, Number(at) + 4, amount(top * share), 'text-anchor="end"'))
  }
  for (const value of xs) parts.push(text(placeOf(value), HEIGHT - BOTTOM + 18, amount(value), 'text-anchor="middle"'))
  parts.push(text((LEFT + right) / 2, HEIGHT - 10, x, 'text-anchor="middle"'))
  parts.push(text(LEFT, TOP - 12, y, 'fill="#555555"'))
  const labels = spread(lines.map(({ points }) => heightOf(points.at(-1)?.[1] ?? 0)))
  lines.forEach(({ name, points, colour: chosen }, i) => {
    const colour = COLOURS[(chosen ?? i) % COLOURS.length]!
    const places = points.map(([px, py]) => [fixed(placeOf(px)), fixed(heightOf(py))] as const)
    parts.push(
      `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${places.map((p) => p.join(',')).join(' ')}"/>`,
    )
    points.forEach(([px, py], n) => {
      const [cx, cy] = places[n]!
      const label = escaped(`${name}: ${amount(py)} at ${amount(px)}`)
      parts.push(`<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"><title>${label}</title></circle>`)
    })
    parts.push(text(right + 10, labels[i]! + 4, name, `fill="${colour}"`))
  })
  return `${[...parts, '</svg>'].join('\n')}\n`
}

/** Where on the picture an x stands. */
function horizontal(xs: readonly number[]): (x: number) => number {
  const positive = xs.filter((x) => x > 0)
  const [first, last] = [Math.log10(positive[0] ?? 1), Math.log10(positive.at(-1) ?? 1)]
  // One decade left of the rest, for zero.
  const from = xs[0] === 0 ? first - 1 : first
  const span = last - from || 1
  return (x) => LEFT + ((x === 0 ? 0 : Math.log10(x) - from) / span) * (WIDTH - LEFT - RIGHT - 20)
}

/** The next of 1, 2, 2.5, 5 and 10 times a power of ten. */
export function niceCeiling(value: number): number {
  if (!(value > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return power * ([1, 2, 2.5, 5, 10].find((step) => step * power >= value) ?? 10)
}

/** Heights of labels, moved apart where they would cover each other. */
function spread(heights: readonly number[]): number[] {
  const result = [...heights]
  const order = heights.map((_, i) => i).sort((a, b) => heights[a]! - heights[b]!)
  for (const [n, i] of order.entries()) {
    const above = order[n - 1]
    if (above !== undefined) result[i] = Math.max(result[i]!, result[above]! + 15)
  }
  return result
}

function amount(value: number): string {
  if (value >= 1e6) return `${trimmed(value / 1e6)} M`
  if (value >= 1e4) return `${trimmed(value / 1e3)} k`
  return trimmed(value)
}

const trimmed = (value: number) => String(Number(value.toPrecision(3)))
const fixed = (value: number) => value.toFixed(1)
const text = (x: number, y: number, content: string, attributes = '') =>
  `<text x="${fixed(x)}" y="${fixed(y)}" ${attributes}>${escaped(content)}</text>`
const escaped = (content: string) => content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
