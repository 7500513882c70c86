/**
 * Whether a value carries a brand, which must be a `Symbol.for`: copies of this package have classes of their own, and brands in common.
 */
export function isBranded(value: unknown, brand: symbol): boolean {
  return typeof value === 'object' && value !== null && (value as { readonly [key: symbol]: unknown })[brand] === true
}
