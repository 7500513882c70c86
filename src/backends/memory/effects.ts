import { unreachable } from '../../core/unreachable.js'
import type { Effect } from '../../ports/settlement.js'
import type { Book } from './book.js'
import { type Commit, closeGroup, groupOf, loneIn, type Of, openGroup } from './commit-step.js'
import { FLAG } from './group-record.js'
import { cancel, erase, finish, park, push, recordAttempt, release, reopen, retryAt } from './item-effects.js'
import { setSchedule } from './schedules.js'

/** Applies one effect. Whatever could keep it from happening has been looked for before. */
export function applyEffect(book: Book, effect: Effect, commit: Commit): void {
  switch (effect.do) {
    case 'push':
      push(book, effect, commit)
      return
    case 'recordAttempt':
      recordAttempt(book, effect, commit)
      return
    case 'retryAt':
      retryAt(book, effect, commit)
      return
    case 'release':
      release(book, effect, commit)
      return
    case 'finish':
      finish(book, effect, commit)
      return
    case 'park':
      park(book, effect, commit)
      return
    case 'reopen':
      reopen(book, effect, commit)
      return
    case 'erase':
      erase(book, effect, commit)
      return
    case 'openGroup':
      openGroup(book, effect, commit)
      return
    case 'closeGroup':
      closeGroup(book, effect, commit)
      return
    case 'contribute':
      contribute(book, effect, commit)
      return
    case 'openGate':
      book.gates.open(effect, commit.now)
      return
    case 'tellGate':
      book.gates.tell(effect.key, effect.member, effect.ok, commit.now)
      return
    case 'notify':
      for (const id of effect.ids) {
        book.shelf.signals.tell(effect.to, id)
        book.shelf.signals.ended(id)
      }
      return
    case 'schedule':
      setSchedule(book, effect.name, { spec: effect.spec, nextAt: effect.nextAt })
      return
    case 'cancel':
      cancel(book, effect, commit)
      return
    case 'pause':
      book.pauses.pause(effect.what, effect.name)
      return
    case 'resume':
      book.pauses.resume(effect.what, effect.name, commit.now)
      return
    case 'log':
      book.log.add({ at: commit.now, who: effect.who, why: effect.why, what: effect.what })
      return
    default:
      unreachable(effect)
  }
}

function contribute(book: Book, { groupId, value, final }: Of<'contribute'>, commit: Commit): void {
  const lone = loneIn(groupId, commit)
  if (lone !== undefined && lone.lone !== 'closed' && lone.loneValue === undefined && !final) {
    lone.loneValue = value
    book.weigh(lone)
    return
  }
  const group = groupOf(book, groupId, commit)
  if (group.final !== undefined) return
  group.value = value
  group.valueText = undefined
  group.version += 1
  if (final) group.final = FLAG
  book.weigh(group)
}
