// `node scripts/imports.mjs [folder]`: imports point down only. Part of `npm run check`.
import { checkImports } from './lib/import-rules.mjs'
import { root } from './lib/root.mjs'

const { files, violations } = checkImports(process.argv[2] ?? root)
for (const { file, line, problem } of violations) console.error(`${file}:${line} ${problem}`)
console.log(
  `${files} files, ${violations.length} ${violations.length === 1 ? 'import' : 'imports'} in the wrong direction`,
)
process.exitCode = violations.length === 0 ? 0 : 1
