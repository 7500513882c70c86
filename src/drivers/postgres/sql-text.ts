import { quoteIdentifier } from './identifier.js'

/**
 * Puts a schema into the text of statements: `{schema}` stands for the quoted name, `{schema_text}` for the quoted name
 * inside a text literal, and `{body}` for a dollar quote that does not occur in the name, so that no name can end the
 * body of a function.
 */
export function withSchema(sql: string, schema: string): string {
  const quoted = quoteIdentifier(schema)
  let tag = '$millrace$'
  for (let n = 0; quoted.includes(tag); n += 1) tag = `$millrace${n}$`
  // One pass, and a function: neither braces nor dollar signs in the name are read again.
  return sql.replaceAll(/\{(schema|schema_text|body)\}/g, (_, what: string) => {
    if (what === 'body') return tag
    return what === 'schema' ? quoted : quoted.replaceAll("'", "''")
  })
}
