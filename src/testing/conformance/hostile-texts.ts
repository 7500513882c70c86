/**
 * Text that breaks what is glued together instead of quoted: SQL, Lua, key patterns, JSON, paths. No NUL and no lone
 * surrogate: several stores refuse those in text, and JSON, which bodies are, never contains them raw.
 */
export const HOSTILE_TEXTS: readonly string[] = Object.freeze([
  "it's",
  '"quoted"',
  "'; drop table items; --",
  '{brace} }{ {{tag}}',
  '[[a]] % _ * ? \\ / $1 $& #{x}',
  'line\nbreak\r\n\ttab',
  'ünïcødé 漢字 🜚 \u202e rtl',
  ' leading and trailing ',
  'a:b:c',
  '__proto__',
  'constructor',
  'x'.repeat(500),
])
