/** A password this short may be part of any word: it is only hidden where an address shows it. */
const SHORTEST = 4
const HIDDEN = '***'

/** Hides in any text what is secret in an address: messages of drivers quote what they were given. */
export function secretHider(address: string | undefined): (text: string) => string {
  const secrets = address === undefined ? [] : secretsOf(address)
  return (text) => {
    let safe = hidePasswords(text)
    for (const secret of secrets) safe = safe.replaceAll(secret, HIDDEN)
    return safe
  }
}

/** An address as it may be shown. */
export function safeAddress(address: string): string {
  return secretHider(address)(address)
}

/** Whatever looks like `//user:password@` or `?password=…`, also in addresses that cannot be read or have no scheme. */
export function hidePasswords(text: string): string {
  return text
    .replace(/^([^\s:/@]*:)[^\s/]\S*(@[^\s@]+)$/, `$1${HIDDEN}$2`)
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/[^/\s:@]*:)\S*(@)/gi, `$1${HIDDEN}$2`)
    .replace(/([?&;](?:password|sslpassword|pass|pwd)=)[^&\s"']*/gi, `$1${HIDDEN}`)
}

function secretsOf(address: string): string[] {
  const written = [
    ...[/^[a-z][a-z0-9+.-]*:\/\/[^/:@]*:(.*)@/i.exec(address)?.[1]],
    ...[...address.matchAll(/[?&;](?:password|sslpassword|pass|pwd)=([^&]*)/gi)].map(([, value]) => value),
  ].filter((one) => one !== undefined)
  const all = written.flatMap((one) => [one, decoded(one)])
  // The longest first: one may be part of another.
  return [...new Set(all)].filter((one) => one.length >= SHORTEST).sort((a, b) => b.length - a.length)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
