// Time that never steps and that all processes of this machine share.

/** Milliseconds since the machine started. */
export function machineNow() {
  return Number(process.hrtime.bigint()) / 1e6
}
