/** The version of this package, as workers report it to the fleet. A test compares it with package.json. */
export const VERSION = '0.0.0'
