// npm test: sets up, then runs the tests; arguments go to vitest (npm test -- test/core).
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endWithNpm } from './end-with-npm.mjs'
import { root } from './root.mjs'
import { setup } from './setup.mjs'

endWithNpm()
process.chdir(root)
await setup()

// In this process, so that a signal meant for the tests reaches them and not a parent of theirs.
process.env['NODE_ENV'] = 'test'
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
process.argv.splice(1, 1, vitest, 'run')
await import(pathToFileURL(vitest).href)
