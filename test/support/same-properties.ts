import fc from 'fast-check'

/**
 * Every run plays the same cases, so that a change is judged by what it changes and not by luck. New cases are searched for
 * on purpose: `MILLRACE_PROPERTY_SEED=random npm test`, or a number to play one again.
 */
const asked = process.env['MILLRACE_PROPERTY_SEED'] ?? '1'
const seed = asked === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(asked)
if (!Number.isSafeInteger(seed))
  throw new Error(`MILLRACE_PROPERTY_SEED is ${JSON.stringify(asked)}. Give it a whole number, or "random".`)
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
