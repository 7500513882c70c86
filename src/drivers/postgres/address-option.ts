import { OptionTypeError, stringOption } from '../../core/options.js'

/** Checked here and not left to the driver: its error would quote the address, password included. */
export function addressOption(path: string, given: unknown): string | undefined {
  if (given === undefined) return undefined
  const address = stringOption(path, given)
  // Without a host, `postgres://user@/database` leads to the socket of this machine.
  const isAddress = !address.includes('://') || URL.canParse(address) || URL.canParse(address.replace('@/', '@host/'))
  if (!isAddress) throw new OptionTypeError(path, "'postgres://user:password@host:port/database'", address)
  return address
}
