// npm run torture: sets up, then becomes torture/main; arguments go there.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endWithNpm } from './end-with-npm.mjs'
import { root } from './root.mjs'
import { setup } from './setup.mjs'

endWithNpm()
await setup()

const main = join(root, 'dist-programs', 'torture', 'main.js')
process.argv[1] = main
await import(pathToFileURL(main).href)
