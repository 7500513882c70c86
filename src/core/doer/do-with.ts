import type { Doer, DoerTaskOptions } from './doer.js'

/**
 * Runs `fn` on a doer and settles as `fn` did: the way to get a result, or an error, out of one.
 *
 * @example
 * ```ts
 * const user = await doWith(apiDoer, () => fetchUser(id), { group: tenant })
 * ```
 */
export function doWith<T>(
  doer: Pick<Doer, 'do'>,
  fn: () => T | PromiseLike<T>,
  options?: DoerTaskOptions,
): Promise<Awaited<T>> {
  return new Promise((resolve, reject) => {
    doer.do(async () => {
      try {
        resolve(await fn())
      } catch (error) {
        reject(error)
      }
    }, options)
  })
}
