/**
 * A column of a batch as PostgreSQL's own text for an array. Clients differ in what they make of a JavaScript array;
 * a text they all pass on as it is.
 */
export function arrayText(values: readonly (string | number | boolean | null)[]): string {
  return `{${values.map(elementText).join(',')}}`
}

function elementText(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return String(value)
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}
