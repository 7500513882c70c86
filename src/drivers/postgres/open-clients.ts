import type { PgClientLike } from './pg-library.js'

type ClientClass = new (config: object) => PgClientLike

/** The connections that were made here and have not ended, those that are still being made included. */
export class OpenClients {
  readonly #open = new Set<PgClientLike>()

  /** The same kind of client, remembered until it has ended, and with these settings where its maker gives no others. */
  remembered(Client: ClientClass, settings: object): ClientClass {
    const open = this.#open
    return class extends Client {
      constructor(config: object) {
        // Not a spread: a pool hides its password and its key from copies.
        super(Object.defineProperties({ ...settings }, Object.getOwnPropertyDescriptors(config)))
        open.add(this)
        this.on('end', () => open.delete(this))
      }
    }
  }

  /** Cuts them, without a word to the server: for one that does not answer. Their running statements reject. */
  cut(): void {
    for (const client of this.#open) {
      const { connection } = client as { readonly connection?: { readonly stream?: { destroy?(): unknown } } }
      connection?.stream?.destroy?.()
    }
  }
}
