import type { TestProject } from 'vitest/node'
import { startBroker } from './server-broker.ts'

declare module 'vitest' {
  interface ProvidedContext {
    serverBroker: number
  }
}

export default async function startServersOnDemand(project: TestProject): Promise<() => Promise<void>> {
  const broker = await startBroker()
  project.provide('serverBroker', broker.port)
  return async () => {
    await broker.close()
    for (const reason of broker.missing) {
      console.error(`\n!!! NOT TESTED: every test that needs this program was left out.\n!!! ${reason}\n`)
    }
  }
}
