type Cell = string | number | boolean | null

/** The properties of a request that can be an element of an array. */
type CellName<Request> = { [Name in keyof Request]: Request[Name] extends Cell ? Name : never }[keyof Request]

/** The requests of a batch, turned by 90 degrees: for each of these properties one array, with an element a request. */
export function columns<Request>(
  requests: readonly Request[],
  ...names: readonly CellName<Request>[]
): string[] {
  return names.map((name) => arrayText(requests.map((request) => request[name] as Cell)))
}

/**
 * PostgreSQL's own text for an array. Clients differ in what they make of a JavaScript array; a text they all pass on as
 * it is.
 */
export function arrayText(values: readonly Cell[]): string {
  return `{${values.map(elementText).join(',')}}`
}

function elementText(value: Cell): string {
  if (typeof value !== 'string') return String(value)
  return `"${value.replace(/["\\]/g, '\\$&')}"`
}
