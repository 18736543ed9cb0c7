import { setup } from './setup.mjs'

await setup({ sqlite: false, always: true })
