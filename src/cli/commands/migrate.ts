import { defineCommand } from '../command.js'
import { checkNotTooNew } from '../connect/storage.js'
import { EXIT } from '../exit.js'
import { clean } from '../terminal/clean.js'

export const migrate = defineCommand({
  name: 'migrate',
  summary: 'create the tables, or update them to the version of this program',
  about: [
    'Workers do this when they start, unless migrate is false. Migrations only add, and run under a lock: several processes may start one together, and older workers keep running. Redis has no tables, so there is nothing to migrate.',
  ],
  flags: { 'dry-run': { kind: 'switch', about: 'only show what is pending; exits with 1 if something is' } },
  examples: [
    [
      'millrace migrate --backend postgres://deploy@db/shop --schema work',
      'before a deploy, as a user with the rights to do so',
    ],
    ['millrace migrate --dry-run', 'is anything pending?'],
  ],
  async run({ screen, flags, isJson, connect }) {
    const connected = await connect()
    if (flags['dry-run']) {
      const { storage } = await connected.facts()
      checkNotTooNew(connected.name, storage)
      const pending = storage.filter(
        ({ part, version, latest }) => version < latest && (part === 'work' || version > 0),
      )
      if (isJson) screen.json({ pending })
      else if (pending.length === 0) screen.line('Nothing is pending.')
      for (const { part, version, latest } of isJson ? [] : pending)
        screen.line(`${part}: ${version === 0 ? 'no tables yet' : `version ${version}`}, would be ${latest}`)
      return pending.length === 0 ? EXIT.done : EXIT.negative
    }
    const migrated = await connected.migrate()
    if (isJson) screen.json({ migrated })
    else if (migrated.length === 0)
      screen.line(`${clean(connected.name)} has no tables, so there is nothing to migrate.`)
    for (const { part, from, to } of isJson ? [] : migrated)
      screen.line(
        from === to
          ? `${part}: version ${to}, unchanged`
          : `${part}: ${from === 0 ? 'created tables, version' : `from version ${from} to`} ${to}`,
      )
    return EXIT.done
  },
})
