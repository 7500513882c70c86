import { isBranded } from '../../core/brand.js'

/** Marks handles. Two copies of the package share it. */
export const HANDLE: unique symbol = Symbol.for('millrace.handle') as never

/** Whether it is the handle of an item. */
export function isHandle(value: unknown): boolean {
  return isBranded(value, HANDLE)
}
