/**
 * One spelling for labels that people write in several: `dependsOn`, `depends_on` and `Depends-On` are all `depends on`. It is
 * about spelling only: words that mean the same stay different.
 */
export function canonicalLabel(label: string): string {
  return label
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .replace(/[-_\s]+/gu, ' ')
    .trim()
}
