import type { QueueFsLike } from '../../../src/backends/memory/index.js'

/** A file system in memory that counts its calls. `files` can be changed under the queue's feet. */
export class RecordingFs {
  readonly files = new Map<string, string>()
  readonly calls: string[] = []
  /** Throws before the call of this name does anything, while it is set. */
  failing: string | undefined
  /** What `mkdir` says that it created. */
  uppermost: string | undefined

  #note(call: string, name: string): void {
    this.calls.push(call)
    if (this.failing === name) throw new Error(`${name} failed`)
  }

  count(name: string): number {
    return this.calls.filter((call) => call.startsWith(`${name} `)).length
  }

  /** Only the four methods: every change is a snapshot. */
  four(): QueueFsLike {
    return {
      readFile: (path) => {
        this.#note(`readFile ${path}`, 'readFile')
        return this.files.get(path)
      },
      writeFile: (path, data) => {
        this.#note(`writeFile ${path}`, 'writeFile')
        this.files.set(path, data)
      },
      rename: (from, to) => {
        this.#note(`rename ${from} ${to}`, 'rename')
        const data = this.files.get(from)
        if (data === undefined) throw new Error(`no such file: ${from}`)
        this.files.set(to, data)
        this.files.delete(from)
      },
      mkdir: (path) => {
        this.#note(`mkdir ${path}`, 'mkdir')
        return this.uppermost
      },
    }
  }

  /** All methods: changes are appended to a journal. */
  journal(): QueueFsLike {
    return {
      ...this.four(),
      append: (path, data) => {
        this.#note(`append ${path}`, 'append')
        this.files.set(path, (this.files.get(path) ?? '') + data)
      },
      remove: (path) => {
        this.#note(`remove ${path}`, 'remove')
        this.files.delete(path)
      },
      sync: (path) => this.#note(`sync ${path}`, 'sync'),
    }
  }
}
