import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { get } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../../src/record/connections.js'
import { checkDurability } from '../../src/record/durability.js'
import { freePort } from '../../src/record/embedded.js'
import { findServer, serverState } from '../../src/record/server-process.js'
import { answerOf, type Ended, makeFolder, type Running, runCli, startCli } from '../cli/run-cli.js'
import { certificate } from '../support/certificate.js'
import { until } from '../support/until.js'
import { type Container, containersOf, manifest, manifests, podsOf } from './manifests.js'

// Starts what the manifests of docs/operations/kubernetes start, as they say, on this machine: the server with its
// configuration, the Job, a hub, a node. Folders, ports and names of the cluster are replaced by those of the test.

const password = 'abc123'
const operatorToken = 'f'.repeat(64)
const folder = makeFolder()
const at = (name: string) => join(folder.path, name)

let port: number
let redis: ChildProcess
let hub: Running
let hubUrl = ''
let node: Running
const secrets: Record<string, string> = {
  'holdfast-redis/password': password,
  'holdfast-operator/token-sha256': createHash('sha256').update(operatorToken).digest('hex'),
}

beforeAll(async () => {
  for (const name of ['tls', 'data', 'redis']) mkdirSync(at(name))
  writeFileSync(at('tls/tls.crt'), certificate.cert)
  writeFileSync(at('tls/tls.key'), certificate.key)
  writeFileSync(at('tls/ca.crt'), certificate.cert)
  port = await freePort()
  redis = await startRedis()
})
afterAll(async () => {
  for (const running of [node, hub]) running?.child.kill('SIGKILL')
  redis?.kill('SIGKILL')
  folder.remove()
})

function containerOf(owner: string, name: string): Container {
  const pod = podsOf(manifests).find((each) => each.owner === owner)
  const found = containersOf(pod).find((each) => each.name === name)
  if (found === undefined) throw new Error(`${owner} has no container ${name}`)
  return found
}

/** The variables that a container has in the pod `POD`. */
function environmentOf({ env = [] }: Container, pod: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const { name, value, valueFrom } of env) {
    const { secretKeyRef } = valueFrom ?? {}
    const given =
      value ?? (secretKeyRef === undefined ? pod : secrets[`${secretKeyRef['name']}/${secretKeyRef['key']}`])
    if (given === undefined)
      throw new Error(`${name} names a Secret that the test has not: ${JSON.stringify(secretKeyRef)}`)
    found[name] = here(expanded(given, found))
  }
  return found
}

function expanded(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\((\w+)\)/g, (whole, name: string) => variables[name] ?? whole)
}

/** What the cluster calls so, as it is called on this machine. */
function here(text: string): string {
  return text
    .replace(/^\/(tls|data|etc\/redis)(?=\/|$)/, (_, name: string) =>
      at(name === 'etc/redis' ? 'redis' : name),
    )
    .replace('@redis:6379', `@127.0.0.1:${port}`)
    .replace('0.0.0.0:8443', '127.0.0.1:0')
    .replace('https://holdfast:8443', hubUrl)
}

function commandOf(container: Container, pod = container.name) {
  const env = environmentOf(container, pod)
  return {
    args: (container.args ?? []).map((word) => here(expanded(word, env))),
    options: { cwd: folder.path, env },
  }
}

async function startRedis(): Promise<ChildProcess> {
  const program = findServer()
  if (program === undefined) throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
  const given = manifest('ConfigMap', 'redis').data?.['redis.conf'] ?? ''
  expect(given).toContain('dir /data\n')
  writeFileSync(at('redis/redis.conf'), given.replace('dir /data\n', `dir ${at('data')}\n`))
  const container = containerOf('redis', 'redis')
  const env = environmentOf(container, 'redis-0')
  const [name, ...words] = (container.command ?? []).map((word) => here(expanded(word, env)))
  expect(name).toBe('redis-server')
  const own = ['--port', String(port), '--bind', '127.0.0.1']
  const child = spawn(program.path, [...words, ...own], {
    argv0: program.name,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  await until(() => store().then((opened) => opened.close().then(() => true)), {
    what: 'the server answering',
  })
  return child
}

const store = () => openStore({ url: `redis://:${password}@127.0.0.1:${port}`, tag: '{hf}', name: 'test' })

function expectEnded({ code, stderr }: Ended): void {
  expect(code, stderr).toBe(0)
}

const answered = (path: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    get(`${hubUrl}${path}`, { ca: certificate.cert }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
  })

const asOperator = () => ({
  cwd: folder.path,
  env: { HOLDFAST_URL: hubUrl, HOLDFAST_TOKEN: operatorToken, HOLDFAST_CA: at('tls/ca.crt') },
})

async function tokenOf(...words: string[]): Promise<string> {
  const { token } = await answerOf<{ token: string }>(['principal', 'add', ...words], asOperator())
  return token
}

describe('an installation as the manifests say', { sequential: true }, () => {
  it('has a server that passes the durability handshake', async () => {
    const opened = await store()
    const checks = await checkDurability(opened, { everysec: false, unseenConfig: false })
    await opened.close()
    expect(checks.length).toBeGreaterThan(6)
    expect(checks.filter(({ verdict }) => verdict !== 'ok')).toEqual([])
  })

  it('asks strangers for the password', async () => {
    expect((await serverState(port)).kind).toBe('silent')
  })

  it('gets its record and its first operator by the Job', async () => {
    for (const name of ['init', 'operator']) {
      const { args, options } = commandOf(containerOf('holdfast-init', name))
      expectEnded(await runCli(args, options))
    }
  })

  it('serves a hub that is alive and ready where it is probed', async () => {
    const container = containerOf('holdfast-hub', 'hub')
    const { args, options } = commandOf(container)
    hub = startCli(args, options)
    const said = await hub.said('"serving"')
    hubUrl = /"url":"(https:[^"]+)"/.exec(said)?.[1] ?? ''
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
      const path = probe?.httpGet?.path ?? ''
      await until(async () => (await answered(path)) === 200, { timeoutMs: 20_000, what: path })
    }
  })

  it('has a node that does what is sent to its host, with its mirror where it stays', async () => {
    secrets['holdfast-node-example/token'] = await tokenOf('node', '--host', 'example')
    const { args, options } = commandOf(containerOf('node-example', 'node'), 'node-example-0')
    node = startCli(args, options)
    await node.said('"joined"')
    const token = await tokenOf('producer', '--name', 'shop')
    const sent = await runCli(['send', '--conversation', 'c1', '--to', 'host:example', '--wait', 'hello'], {
      cwd: folder.path,
      env: { ...asOperator().env, HOLDFAST_TOKEN: token },
    })
    expectEnded(sent)
    expect(existsSync(at('data/mirrors/example/node-example-0.db'))).toBe(true)
  })

  it('drains at SIGTERM, node and hub', async () => {
    for (const running of [node, hub]) {
      running.child.kill('SIGTERM')
      expectEnded(await running.ended)
    }
  })
})
