import { expect, it, vi } from 'vitest'
import { type Engine, startContainerServer } from './container-server.js'
import { serverProvider, startTestServer } from './server.js'

const engineHere: Engine = { connect: async () => 'localhost', commandLine: () => '/usr/bin/docker' }

it('uses a local process unless told otherwise', () => {
  expect(serverProvider(undefined)).toBe('process')
  expect(serverProvider('')).toBe('process')
  expect(serverProvider('process')).toBe('process')
  expect(serverProvider('container')).toBe('container')
  expect(() => serverProvider('docker')).toThrow('"docker": set it to process or container')
})

it('starts a process without loading testcontainers, and a container with it', async () => {
  let loads = 0
  vi.resetModules()
  vi.doMock('./container-server.js', () => {
    loads += 1
    return { startContainerServer: () => Promise.resolve('a container') }
  })
  const fresh = await import('./server.js')
  const server = await fresh.startTestServer('process')
  expect(server.cli('CONFIG', 'GET', 'appendfsync')).toBe('appendfsync\nalways')
  await server.stop()
  expect(loads).toBe(0)
  expect(await fresh.startTestServer('container')).toBe('a container')
  expect(loads).toBe(1)
  vi.doUnmock('./container-server.js')
})

it('fails with what to do when a container is asked for and no engine answers', async () => {
  const engine = { ...engineHere, connect: () => Promise.reject(new Error('connect ENOENT /a.sock')) }
  await expect(startContainerServer(engine)).rejects.toThrow(
    /^HOLDFAST_TEST_SERVER=container: no container engine answers \(connect ENOENT \/a\.sock\)\. Start Docker or Podman .* or unset HOLDFAST_TEST_SERVER/,
  )
})

it('fails when the engine is elsewhere, or nothing here can steer it', async () => {
  const elsewhere = { ...engineHere, connect: async () => '192.0.2.7' }
  await expect(startContainerServer(elsewhere)).rejects.toThrow('the container engine is on 192.0.2.7')
  const unsteered = { ...engineHere, commandLine: () => undefined }
  await expect(startContainerServer(unsteered)).rejects.toThrow('no docker or podman command line in PATH')
})

it('refuses an unknown provider', async () => {
  await expect(startTestServer('vm')).rejects.toThrow('set it to process or container')
})
