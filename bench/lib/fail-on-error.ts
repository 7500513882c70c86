/** `onError` of a bench: what is measured while the engine is in trouble says nothing, so the bench ends here. */
export function failOnError(error: unknown, phase: string): void {
  console.error(`onError (${phase}):`, error)
  process.exit(1)
}
