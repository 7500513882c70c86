/** A queue and a type, as the server spells both in one name: `<bytes of the queue>:<queue><type>`. */
export function homeFrom(text: string): { readonly queue: string; readonly type: string } {
  const colon = text.indexOf(':')
  // The length is the server's, in bytes.
  const rest = Buffer.from(text.slice(colon + 1))
  const size = Number(text.slice(0, colon))
  return { queue: rest.subarray(0, size).toString(), type: rest.subarray(size).toString() }
}
