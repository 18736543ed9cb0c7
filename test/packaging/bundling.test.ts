import { createRequire } from 'node:module'
import { expect, it, onTestFinished } from 'vitest'
import { installPackedPackage } from './packed-package.ts'

it('an application is bundled without the client libraries that it does not use', async () => {
  const application = await installPackedPackage()
  onTestFinished(() => application.remove())
  const esbuild = createRequire(import.meta.resolve('@size-limit/esbuild')).resolve('esbuild')
  const app = `
    import { connect } from 'leasehold'
    const locks = await connect('memory:')
    const ran = await locks.runExclusively('key', () => {})
    await locks.close()
    const missing = await connect('postgres://localhost/app').catch(({ code }) => code)
    console.log(JSON.stringify([ran, missing]))`
  const bundle = `
    import { createRequire } from 'node:module'
    const { build } = createRequire(import.meta.url)(${JSON.stringify(esbuild)})
    const output = { bundle: true, platform: 'node', format: 'esm', outfile: 'bundled.mjs', logLevel: 'silent' }
    await build({ entryPoints: ['app.mjs'], ...output })
    await import('./bundled.mjs')`
  const printed = await application.run({ 'app.mjs': app, 'bundle.mjs': bundle }, 'bundle.mjs')
  expect(printed).toEqual(['ran', 'DRIVER_MISSING'])
})
