/**
 * What the command line ends with; scripts may rely on it.
 *
 * - `done`: it was done, or there was nothing to be said against it
 * - `negative`: it found something (audit, doctor), did not find what was asked for, or did not come to its end
 * - `usage`: it was called in a way that it does not understand; nothing was done
 * - `failed`: the backend could not be reached, cannot do that, or failed
 * - `interrupted`: interrupted a second time, without waiting for a clean end
 */
export const EXIT = Object.freeze({ done: 0, negative: 1, usage: 2, failed: 3, interrupted: 130 } as const)

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
