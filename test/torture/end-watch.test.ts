import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { root } from '../../scripts/root.mjs'

const endWatch = pathToFileURL(join(root, 'dist-programs', 'torture', 'end-watch.js')).href

/** How a process ends that says it is done, and then does this. */
async function endOf(rest: string): Promise<{ readonly how: number | string; readonly said: string }> {
  const program = `import { watchEnd } from ${JSON.stringify(endWatch)}
    watchEnd({ withinMs: 300, kills: true })
    ${rest}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let said = ''
  child.stderr.on('data', (piece) => (said += String(piece)))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  return { how: code ?? signal ?? '', said }
}

describe('the watch over the end of a process', () => {
  it('lets one alone that ends by itself', async () => {
    expect(await endOf('setTimeout(() => {}, 100)')).toEqual({ how: 0, said: '' })
  })

  it('finds one that a timer keeps alive', async () => {
    const { how, said } = await endOf('setInterval(() => {}, 60_000)')
    expect(how).toBe('SIGKILL')
    expect(said).toContain('does not end by itself')
    expect(said).toContain('it is idle')
  })

  it('finds one that spins', async () => {
    const { how, said } = await endOf('function spin() { for (;;) Math.random() }\nsetTimeout(spin, 50)')
    expect(how).toBe('SIGKILL')
    expect(said).toContain('busy in')
  })

  it('finds one whose promises never let the loop turn', async () => {
    const { how, said } = await endOf('const spin = () => Promise.resolve().then(spin)\nsetTimeout(spin, 50)')
    expect(how).toBe('SIGKILL')
    expect(said).toContain('busy in')
  })
})
