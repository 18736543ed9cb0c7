import { setup } from './setup.mjs'

await setup({ sqlite: false, compiles: 'always' })
