import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fileWithDead, fileWithLongNames, MAIN } from './fixtures.js'
import { noTerminal, Terminal } from './terminal.js'

const DEAD = 1_500
const COMMAND = `'${process.execPath}' '${MAIN}'`

let folder = ''
let terminal: Terminal

beforeAll(async () => {
  if (noTerminal !== undefined) return
  folder = mkdtempSync(join(tmpdir(), 'millrace-terminal-'))
  const file = join(folder, 'work.db')
  await fileWithDead(file, DEAD)
  terminal = new Terminal('cli')
  terminal.open(100, 30, { MILLRACE_BACKEND: `sqlite:${file}`, millrace: COMMAND })
  // A word that people type, instead of a line that wraps.
  await terminal.type(`millrace() { ${COMMAND} "$@"; echo "ended with $?"; }; clear`)
  await terminal.shows('ready>')
})

afterAll(() => {
  terminal?.close()
  if (folder !== '') rmSync(folder, { recursive: true, force: true })
})

/** What a person would say about the screen, in a terminal that is empty before. */
async function types(line: string): Promise<void> {
  await terminal.empty()
  await terminal.type(line)
}

describe.skipIf(noTerminal !== undefined)('at a terminal', () => {
  it('the live overview is drawn in place, follows the size, and q ends it', async () => {
    await types('millrace overview --watch --interval 200ms')
    const seen = await terminal.shows('q quits')
    expect(seen).toMatch(/default +broken .* 1,500 /)
    expect(seen).not.toContain('ready>')

    await terminal.resize(60, 20)
    await expect
      .poll(async () =>
        (await terminal.screen()).split('\n').some((line) => line.includes('broken') && line.length <= 60),
      )
      .toBe(true)
    await terminal.resize(100, 30)

    await terminal.press('q')
    // The screen of before is back, with what was seen last below the command.
    const after = await terminal.shows('ended with 0')
    expect(after).toContain('ready> millrace overview --watch')
    expect(after).toMatch(/default +broken .* 1,500 /)
    expect(after).not.toContain('q quits')
  })

  it('Ctrl-C ends it as well, and the keyboard is as before', async () => {
    await types('millrace overview --watch')
    await terminal.shows('q quits')
    await terminal.press('C-c')
    await terminal.shows('ended with 0')
    await types('echo still $((40 + 2))')
    await terminal.shows('still 42')
  })

  it('tables fit and have colours; what strangers wrote changes nothing', async () => {
    const title = await terminal.title()
    await types('millrace list state:dead -n 3')
    const seen = await terminal.shows('ended with 0')
    const rows = seen.split('\n').filter((line) => line.includes('PoisonError'))
    expect(rows).toHaveLength(3)
    for (const row of rows) expect(row.length).toBeLessThan(100)
    expect(await terminal.colours()).toContain('\u001b[31mdead')
    expect(await terminal.title()).toBe(title)
  })

  it('a question is asked with the count, and no means no', async () => {
    await types('millrace discard type:broken')
    await terminal.shows(/discard 1,500 items\? \[y\/N\]/)
    await terminal.type('n')
    const seen = await terminal.shows('ended with 1')
    expect(seen).toContain('Nothing was changed.')
  })

  it('Ctrl-C at a question means no, too', async () => {
    await types('millrace discard type:broken')
    await terminal.shows(/discard 1,500 items\? \[y\/N\]/)
    await terminal.press('C-c')
    await terminal.shows('ended with 1')
  })

  it('yes means yes, with a bar on the way, and the bar does not stay', async () => {
    await types('millrace redrive type:broken --dry-run')
    await terminal.shows('redrive would change 1,500 items')
    await types('millrace discard type:broken')
    await terminal.shows(/\[y\/N\]/)
    await terminal.type('yes')
    const seen = await terminal.shows('ended with 0')
    expect(seen).toContain('Discarded 1,500 items.')
    expect(seen).not.toContain('█')
  })

  it('a slip of the keyboard gets a suggestion', async () => {
    await types('millrace overveiw')
    const seen = await terminal.shows('ended with 2')
    expect(seen).toContain('Did you mean "overview"?')
  })
})

describe.skipIf(noTerminal !== undefined).each([80, 120])('a terminal of %i columns', (columns) => {
  const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/
  let narrow: Terminal
  let file = ''

  beforeAll(async () => {
    file = join(folder, `long-${columns}.db`)
    await fileWithLongNames(file)
    narrow = new Terminal(`cli-${columns}`)
    narrow.open(columns, 90, { MILLRACE_BACKEND: `sqlite:${file}` })
    await narrow.type(`millrace() { ${COMMAND} "$@"; echo "ended with $?"; }; clear`)
    await narrow.shows('ready>')
  })
  afterAll(() => narrow?.close())

  /** The lines of an answer. No line is longer than the terminal, which would break it. */
  async function answer(line: string): Promise<readonly string[]> {
    await narrow.empty()
    await narrow.type(line)
    const seen = await narrow.shows(/ended with \d/)
    const ended = (screen: string) => screen.split('\n').map((one) => one.trimEnd())
    expect(ended(await narrow.unbroken())).toEqual(ended(seen))
    return ended(seen).slice(2)
  }

  it('list shows every id whole, and an error below its row', async () => {
    const lines = await answer('millrace list')
    expect(lines.filter((line) => UUID.test(line))).toHaveLength(4)
    for (const line of lines.filter((one) => UUID.test(one)))
      expect(line).toMatch(new RegExp(`^${UUID.source}  (waiting|retrying|completed|dead) +[^ ]+ .*(ago|in \\d)`))
    expect(lines.filter((line) => line.startsWith('    PoisonError: the invoice of'))).toHaveLength(2)
  })

  it('failures shows fingerprints, one id and the whole error of each group', async () => {
    const lines = await answer('millrace failures')
    const text = lines.join('\n').replaceAll(/\s+/g, ' ')
    expect(lines.filter((line) => /[ :][0-9a-f]{16}( |$)/.test(line)).length).toBeGreaterThanOrEqual(2)
    expect(lines.filter((line) => UUID.test(line)).length).toBeGreaterThanOrEqual(2)
    expect(text).toContain(
      'refers to the field "customer.billingAddress.countryCode", which the contract of this customer does not have. Expected: a code of two letters Received: undefined',
    )
  })

  it('a mistake is explained in lines that break between words', async () => {
    const lines = await answer('millrace list state:ded')
    expect(lines.join(' ')).toContain(
      'one of waiting, scheduled, retrying, blocked, active, completed, dead, cancelled',
    )
  })

  it('show, by the beginning of an id, has the whole item', async () => {
    const [id = ''] = UUID.exec((await answer('millrace list state:dead -n 1')).join('\n')) ?? []
    const lines = await answer(`millrace show ${id.slice(0, -3)}`)
    expect(lines).toContain(`id        ${id}`)
    expect(lines).toContain('type      billing.invoices.render-and-send-to-customer')
    expect(lines).toContain('queue     documents-for-customers-in-europe')
    expect(lines.join(' ').replaceAll(/\s+/g, ' ')).toMatch(new RegExp(`Attempt 1 started on ${UUID.source}\\.`))
    expect(lines.join('\n')).toMatch(/^ +1 .* failed +poison +explicit/m)
    expect(lines.join(' ').replaceAll(/\s+/g, ' ')).toContain(
      "Caused by: TypeError: Cannot read properties of undefined (reading 'countryCode')",
    )
    expect(lines.filter((line) => /[\\/]test[\\/]cli[\\/]fixtures\.ts:\d+:\d+\)?$/.test(line))).toHaveLength(2)
  })
})
