import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { openStore } from '../../src/record/connections.js'
import { type EmbeddedServer, startEmbedded } from '../../src/record/embedded.js'
import { findProgram, findServer, isAlive } from '../../src/record/server-process.js'
import { until } from '../support/until.js'

let dataDir: string
const pids = new Set<number>()

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'holdfast-embedded-'))
})

afterEach(async () => {
  vi.unstubAllEnvs()
  for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  await until(() => [...pids].every((pid) => !isAlive(pid)))
  pids.clear()
  rmSync(dataDir, { recursive: true, force: true })
})

async function start(options: { port?: number; readyDeadlineMs?: number } = {}): Promise<EmbeddedServer> {
  const server = await startEmbedded({ dataDir, ...options })
  pids.add(server.pid)
  return server
}

async function ask(server: EmbeddedServer, ...args: string[]): Promise<unknown> {
  const store = await openStore({ url: server.url, name: 'test' })
  try {
    return await store.call(args)
  } finally {
    await store.close()
  }
}

/** A process that starts the embedded server on the folder, prints it as JSON and stays. */
function startElsewhere(): ChildProcess {
  const module = fileURLToPath(new URL('../../src/record/embedded.ts', import.meta.url))
  const vitest = fileURLToPath(new URL('../../node_modules/vite/dist/node/index.js', import.meta.url))
  const script = `
    import { createServer } from ${JSON.stringify(vitest)}
    const vite = await createServer({ configFile: false, logLevel: 'silent', server: { middlewareMode: true, ws: false, watch: null } })
    const { startEmbedded } = await vite.ssrLoadModule(${JSON.stringify(module)})
    const { pid, attached, port } = await startEmbedded({ dataDir: ${JSON.stringify(dataDir)} })
    console.log(JSON.stringify({ pid, attached, port }))
    setInterval(() => undefined, 1000)`
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

it('starts with every acknowledged write on disk, on loopback only', async () => {
  const server = await start()
  expect(server.attached).toBe(false)
  expect(server.url).toBe(`redis://127.0.0.1:${server.port}`)
  const names = ['appendonly', 'appendfsync', 'no-appendfsync-on-rewrite', 'maxmemory-policy', 'save', 'bind']
  const values = ['yes', 'always', 'no', 'noeviction', '', '127.0.0.1']
  for (const [at, name] of names.entries()) {
    expect(await ask(server, 'CONFIG', 'GET', name)).toEqual([name, values[at]])
  }
  expect(JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8'))).toMatchObject({
    pid: server.pid,
    port: server.port,
  })
})

it('keeps its data over stop and start, and after kill -9', async () => {
  const first = await start()
  await ask(first, 'SET', 'kept', 'yes')
  await first.stop()
  expect(isAlive(first.pid)).toBe(false)
  expect(existsSync(join(dataDir, 'server.json'))).toBe(false)
  const second = await start()
  expect(await ask(second, 'GET', 'kept')).toBe('yes')
  process.kill(second.pid, 'SIGKILL')
  await until(() => !isAlive(second.pid))
  const third = await start()
  expect(third.attached).toBe(false)
  expect(await ask(third, 'GET', 'kept')).toBe('yes')
})

it('attaches to the one that runs, by whatever path; the last user stops it', async () => {
  const first = await start()
  const link = `${dataDir}-link`
  symlinkSync(dataDir, link)
  const second = await startEmbedded({ dataDir: link }).finally(() => rmSync(link))
  expect(second).toMatchObject({ attached: true, pid: first.pid, port: first.port })
  await second.stop()
  expect(await ask(first, 'PING')).toBe('PONG')
  const third = await start()
  await first.stop()
  expect(await ask(third, 'PING')).toBe('PONG')
  await third.stop()
  expect(isAlive(first.pid)).toBe(false)
})

it('starts one server when many start at once', async () => {
  const servers = await Promise.all(Array.from({ length: 6 }, () => start()))
  expect(new Set(servers.map(({ pid }) => pid)).size).toBe(1)
  expect(servers.filter(({ attached }) => !attached)).toHaveLength(1)
})

it('outlives the process that started it when that is killed, and is attached to', async () => {
  const other = startElsewhere()
  const line = await new Promise<string>((resolve) =>
    other.stdout?.once('data', (text) => resolve(String(text))),
  )
  const theirs = JSON.parse(line) as { pid: number; attached: boolean; port: number }
  pids.add(theirs.pid)
  expect(theirs.attached).toBe(false)
  other.kill('SIGKILL')
  await until(() => other.signalCode === 'SIGKILL')
  const server = await start()
  expect(server).toMatchObject({ attached: true, pid: theirs.pid, port: theirs.port })
})

it('never starts a second server beside one that does not answer', async () => {
  const first = await start()
  process.kill(first.pid, 'SIGSTOP')
  await expect(startEmbedded({ dataDir, readyDeadlineMs: 500 })).rejects.toThrow(
    new RegExp(`^STORE_UNAVAILABLE a server \\(pid ${first.pid}\\) holds `),
  )
  process.kill(first.pid, 'SIGCONT')
  expect(await start()).toMatchObject({ attached: true, pid: first.pid })
})

it.each([
  ['a process that is gone', () => 4_000_000],
  ['a process that is another program', () => process.pid],
])('is not misled by a note about %s', async (_, pid) => {
  writeFileSync(join(dataDir, 'server.json'), JSON.stringify({ pid: pid(), port: 1, startTime: '' }))
  expect(await start()).toMatchObject({ attached: false })
})

it('is not misled by a note that leads to the server of another folder, or is no JSON', async () => {
  const first = await start()
  const otherDir = mkdtempSync(join(tmpdir(), 'holdfast-embedded-'))
  writeFileSync(join(otherDir, 'server.json'), readFileSync(join(dataDir, 'server.json')))
  const second = await startEmbedded({ dataDir: otherDir })
  expect(second.attached).toBe(false)
  expect(second.pid).not.toBe(first.pid)
  await second.stop()
  writeFileSync(join(otherDir, 'server.json'), '{"pid":')
  const third = await startEmbedded({ dataDir: otherDir })
  await third.stop()
  rmSync(otherDir, { recursive: true })
})

it('takes over the lock of a process that is gone, also when its id is used again', async () => {
  writeFileSync(join(dataDir, 'server.lock'), '4000000 1 1\n')
  await (await start()).stop()
  writeFileSync(join(dataDir, 'server.lock'), `${process.pid} 1 1\n`)
  await (await start()).stop()
  expect(existsSync(join(dataDir, 'server.lock'))).toBe(false)
})

it('says why the server did not start', async () => {
  const blocker = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await until(() => blocker.listening)
  const address = blocker.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await expect(start({ port })).rejects.toThrow(/^STORE_UNAVAILABLE .*Address already in use/s)
  await new Promise((resolve) => blocker.close(resolve))
  expect(existsSync(join(dataDir, 'server.json'))).toBe(false)

  const first = await start()
  await ask(first, 'SET', 'a', 'b')
  await first.stop()
  writeFileSync(join(dataDir, 'redis', 'appendonlydir', 'appendonly.aof.manifest'), 'nonsense\n')
  await expect(start()).rejects.toThrow(
    /^STORE_UNAVAILABLE the embedded server did not start: its log ends: /,
  )
})

it('stops a server that does not react, within its bound', async () => {
  const server = await start()
  process.kill(server.pid, 'SIGSTOP')
  await Promise.all([server.stop(), server.stop()])
  expect(isAlive(server.pid)).toBe(false)
})

it('is not ended by the signals of the terminal', async () => {
  const server = await start()
  const [, , group] = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  expect(group).toBe(String(server.pid))
})

it('names what is missing when there is no server program', async () => {
  vi.stubEnv('PATH', dataDir)
  await expect(startEmbedded({ dataDir })).rejects.toMatchObject({ code: 'SERVER_NOT_FOUND' })
  expect(existsSync(join(dataDir, 'server.lock'))).toBe(false)
})

it('starts the file checker of redis-tools as a server', async () => {
  const checker = findProgram('redis-check-rdb') ?? findProgram('valkey-check-rdb')
  expect(checker).toBeDefined()
  symlinkSync(String(checker), join(dataDir, 'redis-check-rdb'))
  vi.stubEnv('PATH', dataDir)
  expect(findServer()).toEqual({ path: join(dataDir, 'redis-check-rdb'), name: 'redis-server' })
  expect(await ask(await start(), 'PING')).toBe('PONG')
})
