import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { freePort, reservePort } from '../../scripts/servers/free-port.mjs'

const module = pathToFileURL(join(root, 'scripts', 'servers', 'free-port.mjs')).href
const program = (rest: string) => [
  '--input-type=module',
  '-e',
  `import { freePort, reservePort } from ${JSON.stringify(module)}; ${rest}`,
]

it('a port belongs to the process that asked for it, although nothing listens there', async () => {
  const port = await freePort()
  const answer = execFileSync(process.execPath, program(`console.log(reservePort(${port}))`), {
    encoding: 'utf8',
  })
  expect(answer.trim()).toBe('false')
})

it('a process that was killed keeps no port', async () => {
  const child = spawn(
    process.execPath,
    program('console.log(await freePort()); setInterval(() => {}, 60_000)'),
  )
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(String(said))
  expect(reservePort(port)).toBe(false)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(reservePort(port)).toBe(true)
})
