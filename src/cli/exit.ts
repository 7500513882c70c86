/**
 * The exit codes; scripts may rely on them.
 *
 * - `done`: success
 * - `negative`: it found something (audit, doctor), did not find what was asked for, or stopped early
 * - `usage`: wrong arguments; nothing was done
 * - `failed`: the backend could not be reached, does not support the command, or failed
 * - `interrupted`: interrupted twice, without a clean stop
 */
export const EXIT = Object.freeze({ done: 0, negative: 1, usage: 2, failed: 3, interrupted: 130 } as const)

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
