import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startFaultProxy, type FaultProxy } from './fault-proxy.ts'

describe('the fault proxy', () => {
  let received: string
  let proxy: FaultProxy
  let upstream: ReturnType<typeof createServer>
  const clients: Socket[] = []

  beforeEach(async () => {
    received = ''
    // Answers each piece with itself, so that a lost answer and a lost request can be told apart.
    upstream = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (piece) => {
        received += String(piece)
        socket.write(piece)
      })
    })
    upstream.listen(0, '127.0.0.1')
    await once(upstream, 'listening')
    const { port } = upstream.address() as { port: number }
    proxy = await startFaultProxy(`redis://:secret@127.0.0.1:${port}/3`)
  })

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    await proxy.close()
    upstream.close()
  })

  const open = async () => {
    const client = connect(proxy.port, '127.0.0.1')
    clients.push(client)
    client.setEncoding('utf8')
    await once(client, 'connect')
    return client
  }
  const ask = async (client: Socket, text: string) => {
    client.write(text)
    const [answer] = await once(client, 'data')
    return answer as string
  }
  const receivedBy = (client: Socket) => {
    const pieces: string[] = []
    client.on('data', (piece) => pieces.push(String(piece)))
    return pieces
  }
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve))
  }

  it('leads to another server when it is redirected, and resets what was open', async () => {
    const old = await open()
    expect(await ask(old, 'a')).toBe('a')
    const other = createServer((socket) => socket.on('error', () => {}).end('the other'))
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    old.on('error', () => {})
    const closed = new Promise((resolve) => old.once('close', resolve))
    proxy.redirect(`redis://127.0.0.1:${(other.address() as { port: number }).port}`)
    await closed
    const [answer] = await once(await open(), 'data')
    expect(answer).toBe('the other')
    other.close()
  })

  it('keeps everything of the URL but the address', () => {
    expect(proxy.url).toBe(`redis://:secret@127.0.0.1:${proxy.port}/3`)
  })

  it('passes both ways, and passes an end on', async () => {
    const client = await open()
    expect(await ask(client, 'a')).toBe('a')
    client.end()
    await once(client, 'close')
    await until(() => proxy.connections === 0)
  })

  it('delays each direction and keeps the order when the latency shrinks', async () => {
    const client = await open()
    await proxy.set({ latencyMs: 40 })
    const before = performance.now()
    expect(await ask(client, 'a')).toBe('a')
    expect(performance.now() - before).toBeGreaterThanOrEqual(78)
    client.write('b')
    await new Promise((resolve) => setTimeout(resolve, 5))
    await proxy.set('pass')
    client.write('c')
    await until(() => received === 'abc' || received === 'acb')
    expect(received).toBe('abc')
  })

  it('is silent as a blackhole, on connections old and new, and delivers late when it ends', async () => {
    const old = await open()
    expect(await ask(old, 'a')).toBe('a')
    await proxy.set('blackhole')
    const young = await open()
    const answers = [old, young].map(receivedBy)
    old.write('b')
    young.write('c')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(received).toBe('a')
    expect(answers).toEqual([[], []])
    expect(proxy.connections).toBe(2)
    await proxy.set('pass')
    await until(() => answers.flat().length === 2)
    expect(answers).toEqual([['b'], ['c']])
  })

  it('lets requests through and loses their answers; that connection stays deaf', async () => {
    const client = await open()
    await proxy.set('drop-answers')
    const answers = receivedBy(client)
    client.write('a')
    await until(() => received === 'a')
    await new Promise((resolve) => setTimeout(resolve, 20))
    await proxy.set('pass')
    client.write('b')
    await until(() => received === 'ab')
    expect(await ask(await open(), 'c')).toBe('c')
    expect(answers).toEqual([])
  })

  it('loses requests; that connection is never heard again', async () => {
    const client = await open()
    await proxy.set('drop-requests')
    client.write('a')
    await new Promise((resolve) => setTimeout(resolve, 20))
    await proxy.set('pass')
    client.write('b')
    expect(await ask(await open(), 'c')).toBe('c')
    expect(received).toBe('c')
  })

  it('lets requests through and holds their answers until it ends', async () => {
    const client = await open()
    await proxy.set('hold-answers')
    const answers = receivedBy(client)
    client.write('a')
    await until(() => received === 'a')
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(answers).toEqual([])
    await proxy.set('pass')
    await until(() => answers.length === 1)
    expect(answers).toEqual(['a'])
  })

  it('cuts an answer in the middle, and the connection with it', async () => {
    const client = await open()
    await proxy.set('cut-answers')
    const answers = receivedBy(client)
    client.on('error', () => {})
    client.write('abcdef')
    await new Promise((resolve) => client.once('close', resolve))
    expect([received, answers]).toEqual(['abcdef', ['abc']])
    await proxy.set('pass')
    expect(await ask(await open(), 'g')).toBe('g')
  })

  it('cuts a request in the middle, and the connection with it', async () => {
    const client = await open()
    await proxy.set('cut-requests')
    const answers = receivedBy(client)
    client.on('error', () => {})
    client.write('abcdef')
    await new Promise((resolve) => client.once('close', resolve))
    await until(() => received !== '')
    expect([received, answers]).toEqual(['abc', []])
    await proxy.set('pass')
    expect(await ask(await open(), 'g')).toBe('g')
  })

  it('resets every connection on demand and takes new ones', async () => {
    const client = await open()
    expect(await ask(client, 'a')).toBe('a')
    const failed = once(client, 'error')
    proxy.resetAll()
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
    expect(await ask(await open(), 'b')).toBe('b')
  })

  it('refuses, and comes back on the same port', async () => {
    const client = await open()
    expect(await ask(client, 'a')).toBe('a')
    const failed = once(client, 'error')
    await proxy.set('refuse')
    expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' })
    const refused = connect(proxy.port, '127.0.0.1')
    expect((await once(refused, 'error'))[0]).toMatchObject({ code: 'ECONNREFUSED' })
    await proxy.set('pass')
    expect(await ask(await open(), 'b')).toBe('b')
  })
})
