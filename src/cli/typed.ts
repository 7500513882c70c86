import { safeAddress } from '../core/text/secrets.js'

/** How this command line was called, as far as a suggested command must repeat it. */
export interface CalledAs {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The flags that name the backend and `--redact`; environment variables also apply to the next command. */
  readonly flags: Readonly<Record<string, unknown>>
}

const NAMING = ['backend', 'schema', 'prefix', 'redact'] as const

/** A command line to copy: on the same backend, called the same way, quoted for a shell. */
export function typedCommand(words: readonly string[], { env, flags }: CalledAs): string {
  // With npx, `millrace` is not on the path.
  const self = env['npm_command'] === 'exec' ? ['npx', 'millrace'] : ['millrace']
  const named = NAMING.flatMap((name) => {
    const value = flags[name]
    return typeof value === 'string' ? [`--${name}`, safeAddress(value)] : []
  })
  return [...self, ...words, ...named].map(quoted).join(' ')
}

/** A word quoted for a shell, whatever an id contains. */
function quoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not reach a terminal
  if (!/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/.test(word)) return `'${word.replaceAll("'", "'\\''")}'`
  const bytes = [...Buffer.from(word, 'utf8')].map((byte) =>
    byte >= 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c
      ? String.fromCharCode(byte)
      : `\\x${byte.toString(16).padStart(2, '0')}`,
  )
  return `$'${bytes.join('')}'`
}
