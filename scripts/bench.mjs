// npm run bench: sets up, installs what it measures beside Leasehold, then becomes bench/main; arguments go there.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endWithNpm } from './end-with-npm.mjs'
import { installPeers } from './install-peers.mjs'
import { root } from './root.mjs'
import { setup } from './setup.mjs'

endWithNpm()
await setup()
process.env['LEASEHOLD_BENCH_PEERS'] = await installPeers()
process.chdir(root)

const main = join(root, 'dist-programs', 'bench', 'main.js')
process.argv[1] = main
await import(pathToFileURL(main).href)
