/** What an error says, for the log. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
