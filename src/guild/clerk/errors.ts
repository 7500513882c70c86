import { MillraceError } from '../../core/error.js'
import { describeValue } from '../../core/text/describe-value.js'
import { didYouMean } from '../../core/text/did-you-mean.js'

/** There is no such writ. */
export class WritNotFoundError extends MillraceError {
  constructor(id: string, role = 'writ') {
    super('WRIT_NOT_FOUND', `There is no ${role} ${describeValue(id)}.`, { facts: { id } })
  }
}

/** The beginning of an id that fits none, or several. */
export class WritReferenceError extends MillraceError {
  constructor(prefix: string, candidates: readonly string[]) {
    super(
      'WRIT_REFERENCE',
      candidates.length === 0
        ? `No writ has an id that begins with ${describeValue(prefix)}.`
        : `Several writs have an id that begins with ${describeValue(prefix)}: ${candidates.join(', ')}, … Write more of it.`,
      { facts: { prefix } },
    )
  }
}

/** A type that is not registered. */
export class UnknownWritTypeError extends MillraceError {
  constructor(type: string, known: readonly string[], where = 'The writ type') {
    super(
      'UNKNOWN_WRIT_TYPE',
      `${where} ${describeValue(type)} is not registered${didYouMean(String(type), known)}. Registered: ${known.join(', ') || 'none'}. Load the plugin that registers it.`,
      { facts: { type } },
    )
  }
}

/** A phase that the writ's type does not have. */
export class UnknownPhaseError extends MillraceError {
  constructor(type: string, phase: string, phases: readonly string[]) {
    super('UNKNOWN_PHASE', `The type "${type}" has no phase ${describeValue(phase)}. It has: ${phases.join(', ')}.`, {
      facts: { type, phase },
    })
  }
}

/** A step that the type's state machine does not allow. Nothing was changed. */
export class IllegalTransitionError extends MillraceError {
  constructor(id: string, from: string, to: string, legal: readonly string[]) {
    super(
      'ILLEGAL_TRANSITION',
      legal.length === 0
        ? `Writ ${id} cannot go to "${to}": "${from}" is terminal.`
        : `Writ ${id} cannot go from "${from}" to "${to}". Legal: ${legal.join(', ')}.`,
      { facts: { id, from, to } },
    )
  }
}

/** A cascade has to bring a writ to a phase that cannot be reached from where it is. Everything is rolled back. */
export class UnreachablePhaseError extends MillraceError {
  constructor(id: string, type: string, from: string, to: string) {
    super(
      'UNREACHABLE_PHASE',
      `Writ ${id} of type "${type}" cannot be brought from "${from}" to "${to}", which its family asks for. Name another ` +
        'target in childrenBehavior, or allow a way there.',
      { facts: { id, type, from, to } },
    )
  }
}

/** With `strictCompletion`: a success while something below is not done. */
export class OpenDescendantsError extends MillraceError {
  constructor(id: string, to: string, open: readonly string[]) {
    super(
      'OPEN_DESCENDANTS',
      `Writ ${id} cannot go to "${to}" while writs below it have not ended: ${open.join(', ')}. End them first, or switch ` +
        'off strictCompletion of the Clerk.',
      { facts: { id, to } },
    )
  }
}

/** A child for a parent that has ended. */
export class ParentEndedError extends MillraceError {
  constructor(parentId: string, phase: string) {
    super('PARENT_ENDED', `Writ ${parentId} is "${phase}", which is terminal: it takes no more children.`, {
      facts: { parentId, phase },
    })
  }
}

/** A change that is only possible before the writ has left its initial phase. */
export class WritSettledError extends MillraceError {
  constructor(id: string, field: string, phase: string) {
    super(
      'WRIT_SETTLED',
      `The ${field} of writ ${id} cannot be changed any more: it is "${phase}", and only a writ in its initial phase can be.`,
      { facts: { id, field, phase } },
    )
  }
}

/** The configuration of a type breaks a rule. `path` says where. */
export class WritTypeError extends MillraceError {
  readonly path: string
  constructor(path: string, problem: string) {
    super('BAD_WRIT_TYPE', `${path} ${problem}`, { facts: { path } })
    this.path = path
  }
}

/** A type or a kind that comes twice, or after startup. */
export class RegistrationError extends MillraceError {
  constructor(message: string, facts: Readonly<Record<string, string>> = {}) {
    super('BAD_REGISTRATION', message, { facts })
  }
}

/** A link that cannot be. */
export class LinkError extends MillraceError {
  constructor(message: string, facts: Readonly<Record<string, string>> = {}) {
    super('BAD_LINK', message, { facts })
  }
}

/** A kind that no plugin contributed. */
export class UnknownLinkKindError extends MillraceError {
  constructor(kind: unknown, known: readonly string[]) {
    super('UNKNOWN_LINK_KIND', `Unknown link kind ${describeValue(kind)}. Registered: ${known.join(', ') || 'none'}.`, {
      facts: { kind: describeValue(kind) },
    })
  }
}
