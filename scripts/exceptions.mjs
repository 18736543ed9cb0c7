// npm run exceptions: sets up, then becomes torture/exceptions/main; arguments go there.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endWithNpm } from './end-with-npm.mjs'
import { root } from './root.mjs'
import { setup } from './setup.mjs'

endWithNpm()
await setup()

const main = join(root, 'dist-programs', 'torture', 'exceptions', 'main.js')
process.argv[1] = main
await import(pathToFileURL(main).href)
