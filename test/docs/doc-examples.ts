import type { DoorReference } from '../../scripts/lib/docs/reference.mjs'
import type { PageModule } from './code-blocks.js'

/**
 * The examples of doc comments as modules. They are short enough to paste, so they lack what every reader has: names that a
 * door lists are imported here, and names of the reader's own (`w`, `charge`) stay unknown, which the compiler takes for
 * anything ({@link isOfTheReader}). What is left is whether the calls are right.
 */
export function exampleModules(doors: readonly DoorReference[]): readonly PageModule[] {
  const doorOf = new Map<string, string>()
  for (const { name: door, names } of doors) {
    // A type of another door with that name is probably not what is meant: `Order` is the reader's.
    for (const { name, kind } of names) if (kind !== 'type' && !doorOf.has(name)) doorOf.set(name, door)
  }
  const seen = new Set<string>()
  return doors.flatMap((door) =>
    door.names.flatMap(({ name, file, doc = '' }) => {
      if (seen.has(`${file} ${name}`)) return []
      seen.add(`${file} ${name}`)
      const examples = [...doc.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code)
      return examples.map((code, index) => ({
        name: `example-${door.name.replaceAll('/', '-')}-${name}-${index + 1}.ts`,
        text: `${importsFor(code, door, doorOf)}\n${code}\nexport {}\n`,
      }))
    }),
  )
}

/** Whether an error of the compiler only says that a name is the reader's own. */
export function isOfTheReader(error: string): boolean {
  return /^example-.*: error TS(?:2304|2503|2552|2593|7006|18004):/.test(error)
}

function importsFor(code: string, { name: own, names }: DoorReference, doorOf: ReadonlyMap<string, string>): string {
  const listed = new Map(names.map(({ name, kind }) => [name, kind]))
  const words = new Set(code.match(/(?<![.\w'-])[A-Za-z_]\w*/g))
  return [...words]
    .filter(
      (word) =>
        !new RegExp(`(?:const|let|function|class|interface|type)\\s+${word}\\b|import.*\\b${word}\\b`).test(code),
    )
    .flatMap((word) => {
      const door = listed.has(word) ? own : doorOf.get(word)
      const type = listed.get(word) === 'type' ? 'type ' : ''
      return door === undefined ? [] : [`import { ${type}${word} } from '${door}'`]
    })
    .join('\n')
}
