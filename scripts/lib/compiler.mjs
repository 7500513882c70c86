/**
 * How the compiler is run where other work waits for the same cores. Each of its checkers, four unless told, works out the shared types
 * for itself, and its memory is collected far more often than a short run needs: both together were a third of its time.
 */
export const COMPILER_ARGS = Object.freeze(['--checkers', '1'])

/** The environment that goes with them; a `GOGC` that is set already stays. */
export const compilerEnvironment = () => ({ GOGC: '400', ...process.env })
