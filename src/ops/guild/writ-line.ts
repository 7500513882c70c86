import type { WritDoc } from '../../guild/clerk/writ.js'
import type { WritLine } from '../api.js'

/** A writ as lists show it. */
export function writLine({ id, type, title, phase, parentId, createdAt, updatedAt }: WritDoc): WritLine {
  return { id, type, title, phase, createdAt, updatedAt, ...(parentId === undefined ? {} : { parentId }) }
}
