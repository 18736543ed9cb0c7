import { freePort } from '../../../scripts/servers/free-port.mjs'
import { startRedis, type TestServer } from '../../support/servers.ts'

/** A Redis server in cluster mode, without slots. The bus would take a port 10,000 higher, which is not always there. */
export async function startNode(): Promise<{ readonly server: TestServer; readonly busPort: number }> {
  const busPort = await freePort()
  const server = await startRedis({
    config: {
      'cluster-enabled': 'yes',
      'cluster-config-file': 'nodes.conf',
      'cluster-port': String(busPort),
    },
  })
  return { server, busPort }
}
