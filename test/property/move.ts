import fc, { type AsyncCommand } from 'fast-check'

/** One step of a history: what it does to the real thing has to come out as the model says. */
export interface Move<Model extends object, World> extends AsyncCommand<Model, World> {}

/** @param choices what is drawn for it; shown when a history fails */
export function move<Choices extends object, Model extends object, World>(
  name: string,
  choices: { readonly [Choice in keyof Choices]: fc.Arbitrary<Choices[Choice]> },
  act: (model: Model, world: World, choices: NoInfer<Choices>) => Promise<unknown>,
  isPossible: (model: Model, choices: NoInfer<Choices>) => boolean = () => true,
): fc.Arbitrary<Move<Model, World>> {
  return fc.record<Choices>(choices as never).map((chosen) => ({
    check: (model) => isPossible(model, chosen),
    run: async (model, world) => void (await act(model, world, chosen)),
    toString: () => `${name}(${Object.values(chosen).map(shown).join(', ')})`,
  }))
}

/** Long keys are told by their beginnings. */
function shown(choice: unknown): string {
  const text = String(choice)
  return text.length > 12 ? `${text.slice(0, 11)}…` : text
}
