import type { WorkSystem } from '../../work/create-work.js'
import type { WaitOptions, Work, WorkHandle, WorkInstanceOptions } from '../../work/define/work.js'
import type { ScheduleConfig } from '../../work/schedule/config.js'
import type { History, Wait } from './history.js'
import { plainWork } from './watched-work.js'

/** The same system, with everything that it promises written down. */
export function watchedSystem(system: WorkSystem, process: string, history: History): WorkSystem {
  const watched = (handle: WorkHandle): WorkHandle => {
    history.offered(handle.id, handle.groupId)
    handle.accepted().then(
      ({ id }) => history.accepted(id),
      (error: unknown) => history.refused(handle.id, error),
    )
    return watchedHandle(handle, process, history)
  }
  // One function behind the two overloads, as in the system itself.
  const enqueue = (first: Work | string, ...rest: unknown[]) => {
    const args = [typeof first === 'string' ? first : plainWork(first), ...rest]
    return watched(system.enqueue(...(args as unknown as Parameters<WorkSystem['enqueue']>)) as WorkHandle)
  }
  const enqueueMany = async (works: readonly Work[], options?: WorkInstanceOptions) => {
    for (const { id } of works) history.offered(id)
    const handles = await system.enqueueMany(works.map(plainWork), options)
    for (const { id, groupId } of handles) {
      history.offered(id, groupId)
      history.accepted(id)
    }
    return handles.map((handle) => watchedHandle(handle, process, history))
  }
  const schedule = (config: ScheduleConfig) =>
    system.schedule({
      ...config,
      run: async (fire) => {
        const work = await config.run(fire)
        if (work === undefined || work === null) return undefined
        history.scheduled(work.id)
        return plainWork(work)
      },
    })
  return Object.freeze({ ...system, enqueue, enqueueMany, schedule } as unknown as WorkSystem)
}

function watchedHandle(handle: WorkHandle, process: string, history: History): WorkHandle {
  const { id, groupId } = handle
  const wait = (kind: Wait['kind'], options: WaitOptions | undefined): Promise<unknown> => {
    const isLimited = options?.timeout !== undefined || options?.signal !== undefined
    const waiting = history.waitBegan({ kind, id, groupId, process, isLimited })
    const waited = handle[kind](options)
    waited.then(
      (value) => history.waitEnded(waiting, { value }),
      (error: unknown) => history.waitEnded(waiting, { error }),
    )
    return waited
  }
  return {
    id,
    groupId,
    accepted: () => handle.accepted(),
    result: (options) => wait('result', options),
    group: (options) => wait('group', options),
    cancel: (reason) => handle.cancel(reason),
    progress: () => handle.progress(),
    watchProgress: (options) => handle.watchProgress(options),
    then: (onDone, onFailed) => wait('group', undefined).then(onDone, onFailed),
  }
}
