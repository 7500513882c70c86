import { MillraceError } from '../../core/error.js'
import { type Mode, WrongModeError } from '../../ports/mode.js'
import type { RedisContext } from './context.js'

/** The version of the storage that this code writes. */
const STORAGE_VERSION = 1

/** The namespace was written by a newer version that this one does not understand. */
class StorageTooNewError extends MillraceError {
  constructor(tag: string, minReader: number) {
    super(
      'SCHEMA_TOO_NEW',
      `The namespace ${tag} needs code of storage version ${minReader} or newer; this is version ${STORAGE_VERSION}. ` +
        'Upgrade millrace in this process before it starts again.',
      { facts: { namespace: tag, minReader, own: STORAGE_VERSION } },
    )
  }
}

/** Claims the namespace for one way of using it, once; the first process decides. */
export function modeGuard(context: RedisContext, mode: Mode): () => Promise<void> | undefined {
  let isKnown = false
  let asking: Promise<void> | undefined
  return () => {
    if (isKnown) return undefined
    asking ??= (async () => {
      try {
        const [found, minReader] = (await context.run('mode', [mode, STORAGE_VERSION])) as [string, string]
        if (Number(minReader) > STORAGE_VERSION) throw new StorageTooNewError(context.tag, Number(minReader))
        if (found !== mode)
          throw new WrongModeError(
            `The namespace ${context.tag}`,
            'prefix',
            found === 'native' ? 'native' : 'plain',
            mode,
          )
        isKnown = true
      } finally {
        asking = undefined
      }
    })()
    return asking
  }
}
