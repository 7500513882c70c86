/**
 * How many items a claim with rooms takes from a queue because they have expired: at most a quarter of `max`, rounded up. They are
 * ended, not run; without a limit a large number of them would keep items that can run, of any priority, waiting.
 */
export const expiredShare = (max: number): number => Math.ceil(Math.max(0, max) / 4)
