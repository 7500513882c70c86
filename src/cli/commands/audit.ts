import { BY_FLAGS, byOf, watched } from '../bulk.js'
import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { wrap } from '../screen.js'
import { counted } from '../terminal/bar.js'
import { clean } from '../terminal/clean.js'
import { repairsOf } from '../views/next-steps.js'
import { renderReasons } from '../views/reasons.js'

export const audit = defineCommand({
  name: 'audit',
  summary: 'find unfinished items that nothing would ever finish, and mend them with --repair',
  about: [
    'Every unfinished item has a live lease, a due time, or a blocker that itself can finish. Whatever breaks that is listed with its repair. Ends with 0 if nothing is left to repair, with 1 otherwise.',
  ],
  flags: {
    repair: { kind: 'switch', about: 'mend what can be mended, and log it' },
    thorough: { kind: 'switch', about: 'look at all that has ended, too, for groups that never closed' },
    ...BY_FLAGS,
  },
  examples: [
    ['millrace audit', 'is anything stuck for ever?'],
    ['millrace audit --repair --why "after the restore"', 'mend it'],
  ],
  async run(call) {
    const { screen, flags, isJson, typed } = call
    const ops = await call.ops()
    const repair = flags.repair ? { repair: byOf(call) } : {}
    const report = await watched(call, 'audit', ({ progress, signal }) =>
      ops.audit({ signal, ...repair, thorough: flags.thorough, onProgress: ({ checked }) => progress.count(checked) }),
    )
    const { checked, found, repaired, findings, isComplete, unseen } = report
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
      if (!isComplete) screen.line('It was stopped before it had seen everything.')
      for (const { text } of unseen) screen.lines(wrap(`Not looked at: ${clean(text)}`, screen.columns))
      if (unseen.some(({ code }) => code === 'ended')) screen.line(`  ${typed(['audit', '--thorough'])}`)
      const isMendable = findings.some((finding) => !finding.isRepaired && finding.canRepair)
      if (!flags.repair && isMendable) screen.line(`Some of them can be mended: ${typed(['audit', '--repair'])}`)
    }
    return open === 0 && isComplete ? EXIT.done : EXIT.negative
  },
})

function summary(checked: number, found: number, open: number): string {
  const looked = `Looked at ${counted(checked, 'item')}: `
  if (found === 0) return `${looked}everything can finish.`
  return open === 0
    ? `${looked}${counted(found, 'finding')}, all repaired.`
    : `${looked}${counted(open, 'finding')} to repair.`
}
