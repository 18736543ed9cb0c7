/** The random histories to play: the first three, or as many as `CONTRACT_SEEDS` says (`40`, or `17,23` for these two). */
export function seedsToPlay(): readonly number[] {
  const wish = process.env['CONTRACT_SEEDS'] ?? '3'
  if (wish.includes(',')) return wish.split(',').filter(Boolean).map(Number)
  return Array.from({ length: Number(wish) }, (_, index) => index + 1)
}
