import { ProgramMissingError, programFolder } from '../../scripts/servers/programs.mjs'

/**
 * Whether a program that is no store is here, or could be installed; for `describe.skipIf`. With `CI=true` it is, or the
 * test file fails; elsewhere what is left out is said.
 */
export function isInstalled(program: Parameters<typeof programFolder>[0]): boolean {
  try {
    programFolder(program)
    return true
  } catch (error) {
    if (!(error instanceof ProgramMissingError) || process.env['CI'] === 'true') throw error
    console.error(`!!! NOT TESTED: every test that needs this program was left out.\n!!! ${error.message}`)
    return false
  }
}
