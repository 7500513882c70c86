import { MillraceError } from '../../core/error.js'

/** A template, a mapping, a block type or a setting that cannot be used. Startup fails. */
export class SpiderConfigError extends MillraceError {
  constructor(message: string, facts: Readonly<Record<string, string>> = {}) {
    super('BAD_SPIDER_CONFIG', message, { facts })
  }
}

/** A run took longer than its design allows: the reason of its signal, and what it failed with. A new attempt may succeed. */
export class EngineTimeoutError extends MillraceError {
  constructor(designId: string, timeoutMs: number) {
    super(
      'RUN_TIMEOUT',
      `The engine took longer than the timeoutMs of its design "${designId}" (${timeoutMs} ms). Pass ctx.signal to what it waits ` +
        'for, or raise timeoutMs.',
      { facts: { designId, timeoutMs } },
    )
  }
}

/** There is no such rig. */
export class RigNotFoundError extends MillraceError {
  constructor(rigId: string) {
    super('RIG_NOT_FOUND', `There is no rig "${rigId}".`, { facts: { rigId } })
  }
}

/** An engine that is not there, or does not wait. */
export class NotBlockedError extends MillraceError {
  constructor(rigId: string, engineId: string, status: string | undefined) {
    super(
      'ENGINE_NOT_BLOCKED',
      status === undefined
        ? `Rig ${rigId} has no engine "${engineId}".`
        : `Engine "${engineId}" of rig ${rigId} is ${status}: only one that is blocked or held back can be resumed.`,
      { facts: { rigId, engineId } },
    )
  }
}
