// npm run schedulers: sets up, then becomes test/programs/schedulers; arguments go there.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endWithNpm } from './end-with-npm.mjs'
import { root } from './root.mjs'
import { setup } from './setup.mjs'

endWithNpm()
await setup()

const main = join(root, 'dist-programs', 'test', 'programs', 'schedulers.js')
process.argv[1] = main
await import(pathToFileURL(main).href)
