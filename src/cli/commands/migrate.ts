import { defineCommand } from '../command.js'
import { EXIT } from '../exit.js'
import { checkNotTooNew } from '../reach/storage.js'
import { clean } from '../terminal/clean.js'

export const migrate = defineCommand({
  name: 'migrate',
  summary: 'bring the tables to the version of this program, or make them',
  about: [
    'Workers do it by themselves unless they were told not to (migrate: false). Steps only add, and run under a lock: any number of processes may try at once, and older workers go on. Redis has no tables, so that nothing is to be done there.',
  ],
  flags: { 'dry-run': { kind: 'switch', about: 'only say what is pending; ends with 1 if something is' } },
  examples: [
    ['millrace migrate --backend postgres://deploy@db/shop --schema work', 'before a deploy, with the rights for it'],
    ['millrace migrate --dry-run', 'is anything pending?'],
  ],
  async run({ screen, flags, isJson, reach }) {
    const reached = await reach()
    if (flags['dry-run']) {
      const { storage } = await reached.facts()
      checkNotTooNew(reached.name, storage)
      const pending = storage.filter(
        ({ part, version, latest }) => version < latest && (part === 'work' || version > 0),
      )
      if (isJson) screen.json({ pending })
      else if (pending.length === 0) screen.line('Nothing is pending.')
      for (const { part, version, latest } of isJson ? [] : pending)
        screen.line(`${part}: ${version === 0 ? 'no tables yet' : `version ${version}`}, would be ${latest}`)
      return pending.length === 0 ? EXIT.done : EXIT.negative
    }
    const migrated = await reached.migrate()
    if (isJson) screen.json({ migrated })
    else if (migrated.length === 0) screen.line(`${clean(reached.name)} has no tables: nothing is to be done.`)
    for (const { part, from, to } of isJson ? [] : migrated)
      screen.line(
        from === to
          ? `${part}: version ${to}, as it was`
          : `${part}: ${from === 0 ? 'tables made, version' : `from version ${from} to`} ${to}`,
      )
    return EXIT.done
  },
})
