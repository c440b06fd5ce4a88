import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { initRecord, openHub } from '../../src/hub/open-hub.js'
import { createNode } from '../../src/node/create-node.js'
import { openStore } from '../../src/record/connections.js'
import { freePort } from '../../src/record/embedded.js'
import { openQueueConnection } from '../../src/record/queue-connection.js'
import { runCli } from '../cli/run-cli.js'
import { certificate } from '../support/certificate.js'
import { until } from '../support/until.js'
import { createTroop } from '../topology/processes.js'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-tls-'))
const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
writeFileSync(certFile, certificate.cert)
writeFileSync(keyFile, certificate.key)
const troop = createTroop()
let url = ''
const tls = { ca: certificate.cert, cert: certificate.cert, key: certificate.key }

beforeAll(async () => {
  const port = await freePort()
  const server = await troop.server({
    'tls-port': port,
    'tls-cert-file': certFile,
    'tls-key-file': keyFile,
    'tls-ca-cert-file': certFile,
    'tls-auth-clients': 'yes',
  })
  await server.start()
  url = `rediss://127.0.0.1:${port}`
})
afterAll(async () => {
  await troop.end()
  rmSync(folder, { recursive: true, force: true })
})

describe('a record behind TLS that asks for a certificate', () => {
  it('takes hub, node and the queue of the sweeps', async () => {
    const redis = { url, tls }
    await initRecord({ redis })
    const hub = await openHub({ redis })
    const executed: string[] = []
    const node = createNode({
      redis,
      host: 'a',
      mirror: join(folder, 'a.db'),
      execute: ({ payload }) => {
        executed.push(payload.toString())
        return null
      },
    })
    await node.start()
    await hub.accept({ key: 'k', conversation: 'c', sender: 's', to: [{ host: 'a' }], payload: 'over TLS' })
    await until(() => executed.length === 1)
    await until(async () => (await hub.counts()).finished === 1)
    await node.stop()
    await hub.close()
    const queue = openQueueConnection(redis, '{hf}', 'tests')
    expect(await queue.ping()).toBe('PONG')
    queue.disconnect()
  })

  it.each([
    ['without the CA', { cert: tls.cert, key: tls.key }, /self-signed certificate/],
    ['without a certificate', { ca: tls.ca }, /closed|certificate|ECONNRESET|no answer/],
  ])('refuses who comes %s, in time', async (_, material, why) => {
    const opening = openStore({ url: { url, tls: material }, name: 'tests', connectDeadlineMs: 1000 })
    await expect(opening).rejects.toThrow(why)
    await expect(opening).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('is reached by the command line with files', async () => {
    const files = ['--redis-ca', certFile, '--redis-cert', certFile, '--redis-key', keyFile]
    const told = await runCli(['--redis', url, ...files, '--json', 'host', 'ls'], { cwd: folder })
    expect(told.stdout).toContain('"a"')
    const without = await runCli(['--redis', url, 'host', 'ls'], { cwd: folder })
    expect(without.code).not.toBe(0)
    expect(without.stderr).toMatch(/STORE_UNAVAILABLE.*self-signed certificate/s)
    const plainUrl = url.replace('rediss', 'redis')
    const plain = await runCli(['--redis', plainUrl, '--redis-ca', certFile, 'host', 'ls'], { cwd: folder })
    expect(plain.stderr).toContain('--redis-ca: belongs to a rediss:// URL')
  })
})
