/** The version of this package, as it tells of itself to the fleet. A test compares it with package.json. */
export const VERSION = '0.0.0'
