/** The default branch of a switch over a closed union: a new member fails to compile here. */
export function unreachable(value: never): never {
  throw new TypeError(`unreachable: ${JSON.stringify(value)}`)
}
