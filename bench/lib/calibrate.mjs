/** About 50 ms on the machines of 2026. */
const STEPS = 20_000_000

/**
 * A fixed computation that touches neither memory nor system, beside every measurement: on an idle machine it takes the same time in
 * every round. What it takes longer, others took from us, and the round's figures with it.
 * @returns {{ ms: number, cpuMs: number }} on the wall, and on a core
 */
export function calibrate() {
  const [at, cpu] = [performance.now(), process.cpuUsage()]
  let x = 0x9e3779b9
  for (let i = 0; i < STEPS; i += 1) {
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
  }
  // Never so, but the computation must not be optimised away.
  if (x === 0) throw new Error('the generator reached zero')
  const { user, system } = process.cpuUsage(cpu)
  return { ms: performance.now() - at, cpuMs: (user + system) / 1_000 }
}
