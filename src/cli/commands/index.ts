import type { Command } from '../command.js'
import { actions } from './actions.js'
import { audit } from './audit.js'
import { cancel } from './cancel.js'
import { continueAction } from './continue.js'
import { demo } from './demo.js'
import { discard } from './discard.js'
import { doctor } from './doctor.js'
import { explain } from './explain.js'
import { failures } from './failures.js'
import { discardLetters, letters, redriveLetters } from './letters.js'
import { list } from './list.js'
import { log } from './log.js'
import { migrate } from './migrate.js'
import { overview } from './overview.js'
import { pause, resume } from './pause.js'
import { preview } from './preview.js'
import { redrive } from './redrive.js'
import { rig } from './rig.js'
import { runNow } from './run-now.js'
import { schedules } from './schedules.js'
import { show } from './show.js'
import { workers } from './workers.js'
import { writ } from './writ.js'
import { writs } from './writs.js'

/** All commands, grouped by purpose. */
export const GROUPS: readonly (readonly [title: string, commands: readonly Command[]])[] = [
  ['Getting started', [demo, doctor, migrate]],
  ['Inspect', [overview, list, show, failures, workers, schedules]],
  ['Diagnose', [explain, preview, audit, log]],
  ['Act', [redrive, discard, cancel, runNow, pause, resume, actions, continueAction]],
  ['Streams', [letters, redriveLetters, discardLetters]],
  ['Guild', [writs, writ, rig]],
]

export const COMMANDS: readonly Command[] = GROUPS.flatMap(([, commands]) => commands)
