// npm run demo: sets up, then becomes examples/demo/main; arguments go there.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endWithNpm } from './end-with-npm.mjs'
import { root } from './root.mjs'
import { setup } from './setup.mjs'

endWithNpm()
const usesServer = process.argv.some((argument) => /^(--url=)?(postgres(ql)?|rediss?|memory):/.test(argument))
await setup({ sqlite: !usesServer })

const main = join(root, 'dist-programs', 'examples', 'demo', 'main.js')
process.argv[1] = main
await import(pathToFileURL(main).href)
