import { ACTOR_FLAGS, actorOf, watched } from '../bulk.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { wrap } from '../screen.js'
import { counted } from '../terminal/bar.js'
import { clean } from '../terminal/clean.js'
import { repairsOf } from '../views/next-steps.js'
import { renderReasons } from '../views/reasons.js'

export const audit = defineCommand({
  name: 'audit',
  summary: 'find unfinished items that can never finish; --repair repairs them',
  about: [
    'Every unfinished item should have a live lease, a due time, or a blocker that can itself finish. Each item without one is listed with its repair. Exits with 0 if nothing is left to repair, with 1 otherwise.',
  ],
  flags: {
    repair: { kind: 'switch', about: 'repair what can be repaired, and log it' },
    thorough: { kind: 'switch', about: 'check all ended items, too, for groups that never closed' },
    ...ACTOR_FLAGS,
  },
  examples: [
    ['millrace audit', 'is anything stuck forever?'],
    ['millrace audit --repair --why "after the restore"', 'repair it'],
  ],
  async run(call) {
    const { screen, flags, isJson, typed } = call
    const ops = await call.ops()
    const repair = flags.repair ? { repair: actorOf(call) } : {}
    const report = await watched(call, 'audit', ({ progress, signal }) =>
      ops.audit({ signal, ...repair, thorough: flags.thorough, onProgress: ({ checked }) => progress.count(checked) }),
    )
    const { checked, found, repaired, findings, isComplete, skipped } = report
    const open = found - repaired
    if (isJson) screen.json(report)
    else {
      for (const finding of findings) {
        const { code, id, isRepaired } = finding
        const mark = isRepaired ? screen.paint('good', 'repaired') : screen.paint('bad', clean(code))
        screen.line(`${mark}  ${screen.paint('name', clean(id))}`)
        const remedy = isRepaired ? `Done: ${finding.repair}` : finding.repair
        const commands = isRepaired ? [] : repairsOf(code, id).map((words) => typed(words))
        screen.lines(renderReasons([{ text: finding.text, remedy, commands }], screen.columns, screen.paint))
        screen.line()
      }
      if (found > findings.length) screen.line(`… and ${counted(found - findings.length, 'more finding')}`)
      screen.line(summary(checked, found, open))
      if (!isComplete) screen.line('It was stopped before it had checked everything.')
      for (const { text } of skipped) screen.lines(wrap(`Not checked: ${clean(text)}`, screen.columns))
      if (skipped.some(({ code }) => code === 'ended')) screen.line(`  ${typed(['audit', '--thorough'])}`)
      const isRepairable = findings.some((finding) => !finding.isRepaired && finding.canRepair)
      if (!flags.repair && isRepairable) screen.line(`Some of them can be repaired: ${typed(['audit', '--repair'])}`)
    }
    return open === 0 && isComplete ? EXIT.done : EXIT.negative
  },
})

function summary(checked: number, found: number, open: number): string {
  const checkedText = `Checked ${counted(checked, 'item')}: `
  if (found === 0) return `${checkedText}everything can finish.`
  return open === 0
    ? `${checkedText}${counted(found, 'finding')}, all repaired.`
    : `${checkedText}${counted(open, 'finding')} to repair.`
}
