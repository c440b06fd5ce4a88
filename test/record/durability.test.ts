import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/record/connections.js'
import { checkDurability, type DurabilityCheck } from '../../src/record/durability.js'
import { freePort } from '../../src/record/embedded.js'
import { findServer, serverState } from '../../src/record/server-process.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// What a record needs of its server, on real servers: good, and each thing bad by itself.

const nothing = { everysec: false, unseenConfig: false }
const all = { everysec: true, unseenConfig: true }

let server: TestServer
let store: Store

beforeAll(async () => {
  server = await startTestServer()
  store = await openStore({ url: server.url, name: 'test' })
})
afterAll(async () => {
  await store?.close()
  await server?.stop()
})

const notOk = (checks: readonly DurabilityCheck[]) => checks.filter(({ verdict }) => verdict !== 'ok')

async function whileSet(name: string, bad: string, good: string, look: () => Promise<void>): Promise<void> {
  await store.call(['CONFIG', 'SET', name, bad])
  try {
    await look()
  } finally {
    await store.call(['CONFIG', 'SET', name, good])
  }
}

it('a server as it is asked for passes every check', async () => {
  const checks = await checkDurability(store, nothing)
  expect(checks.map(({ name }) => name)).toEqual([
    'version',
    'role',
    'aof_enabled',
    'aof_last_write_status',
    'appendonly',
    'appendfsync',
    'no-appendfsync-on-rewrite',
    'maxmemory-policy',
  ])
  expect(notOk(checks)).toEqual([])
  expect(checks.every(({ fix }) => fix === undefined)).toBe(true)
})

it.each([
  ['appendfsync', 'everysec', 'always'],
  ['appendfsync', 'no', 'always'],
  ['no-appendfsync-on-rewrite', 'yes', 'no'],
  ['maxmemory-policy', 'allkeys-lru', 'noeviction'],
  ['maxmemory-policy', 'volatile-ttl', 'noeviction'],
])('%s %s is bad, and the line that mends it is said', async (name, bad, good) => {
  await whileSet(name, bad, good, async () => {
    const [found, ...others] = notOk(await checkDurability(store, nothing))
    expect(found).toMatchObject({ name, value: bad, verdict: 'bad' })
    expect(others).toEqual([])
    const [, ...line] = (found?.fix ?? '').replace(/ \(.*$/, '').split(' ')
    expect(line).toEqual(['CONFIG', 'SET', name, good])
    await store.call(line)
    expect(notOk(await checkDurability(store, nothing))).toEqual([])
  })
})

it('no AOF is bad, by what is set and by what is done', async () => {
  await whileSet('appendonly', 'no', 'yes', async () => {
    const found = notOk(await checkDurability(store, all))
    expect(found.map(({ name, value, verdict }) => [name, value, verdict])).toEqual([
      ['aof_enabled', '0', 'bad'],
      ['appendonly', 'no', 'bad'],
    ])
  })
})

it('everysec is accepted where it was chosen; nothing else is', async () => {
  await whileSet('appendfsync', 'everysec', 'always', async () => {
    const chosen = await checkDurability(store, { ...nothing, everysec: true })
    expect(notOk(chosen)).toMatchObject([{ name: 'appendfsync', value: 'everysec', verdict: 'accepted' }])
    const other = await checkDurability(store, { ...nothing, unseenConfig: true })
    expect(notOk(other)).toMatchObject([{ name: 'appendfsync', verdict: 'bad' }])
  })
  await whileSet('appendfsync', 'no', 'always', async () => {
    expect(notOk(await checkDurability(store, all))).toMatchObject([{ value: 'no', verdict: 'bad' }])
  })
  await whileSet('maxmemory-policy', 'allkeys-lru', 'noeviction', async () => {
    expect(notOk(await checkDurability(store, all))).toMatchObject([{ verdict: 'bad' }])
  })
})

describe('a user of limited rights', () => {
  async function as(rights: readonly string[], look: (limited: Store) => Promise<void>): Promise<void> {
    await store.call(['ACL', 'SETUSER', 'limited', 'on', '>secret', '~*', '&*', '+@all', ...rights])
    const url = server.url.replace('redis://', 'redis://limited:secret@')
    const limited = await openStore({ url, name: 'limited' })
    try {
      await look(limited)
    } finally {
      await limited.close()
      await store.call(['ACL', 'DELUSER', 'limited'])
    }
  }

  it.each([[['-config']], [['-config|get']], [['-@dangerous', '+info']]])(
    '%j: what cannot be seen is bad until that is accepted',
    async (rights) => {
      await as(rights, async (limited) => {
        const found = await checkDurability(limited, nothing)
        expect(notOk(found)).toMatchObject([
          {
            name: 'config',
            value: 'CONFIG is forbidden',
            verdict: 'bad',
            fix: expect.stringContaining('accept_unseen_config 1'),
          },
        ])
        // What INFO tells is seen all the same.
        expect(found.map(({ name }) => name)).toContain('aof_enabled')
        const everysec = await checkDurability(limited, { ...nothing, everysec: true })
        expect(notOk(everysec)).toMatchObject([{ name: 'config', verdict: 'bad' }])
        const accepted = await checkDurability(limited, { ...nothing, unseenConfig: true })
        expect(notOk(accepted)).toMatchObject([{ name: 'config', verdict: 'accepted' }])
        await whileSet('appendonly', 'no', 'yes', async () => {
          const bad = notOk(await checkDurability(limited, all)).filter(({ verdict }) => verdict === 'bad')
          expect(bad.map(({ name }) => name)).toEqual(['aof_enabled'])
        })
      })
    },
  )

  it('that may not read INFO is told so, and that cannot be accepted', async () => {
    await as(['-info'], async (limited) => {
      const found = await checkDurability(limited, all)
      expect(notOk(found)).toMatchObject([
        {
          name: 'info',
          value: 'INFO is forbidden',
          verdict: 'bad',
          fix: expect.stringContaining('allow INFO'),
        },
      ])
      // What CONFIG tells is seen all the same.
      expect(found.map(({ name }) => name)).toContain('appendfsync')
    })
  })
})

it('a replica is bad: it takes no writes', async () => {
  const replica = await startTestServer()
  const there = await openStore({ url: replica.url, name: 'test' })
  try {
    await there.call(['REPLICAOF', '127.0.0.1', String(server.port)])
    const found = notOk(await checkDurability(there, all))
    expect(found).toMatchObject([{ name: 'role', value: 'slave', verdict: 'bad' }])
    expect(found[0]?.fix).toContain('--redis')
    await there.call(['REPLICAOF', 'NO', 'ONE'])
    expect(notOk(await checkDurability(there, nothing))).toEqual([])
  } finally {
    await there.close()
    await replica.stop()
  }
})

it('an AOF that cannot be written is bad', async () => {
  const { url, stop } = await startFullServer()
  const there = await openStore({ url, name: 'test' })
  try {
    expect(notOk(await checkDurability(there, { ...nothing, everysec: true }))).toMatchObject([
      { name: 'appendfsync', verdict: 'accepted' },
    ])
    await there.call(['SET', 'k', 'x'.repeat(1_000_000)])
    const bad = await until(
      async () => {
        const found = notOk(await checkDurability(there, all)).filter(({ verdict }) => verdict === 'bad')
        return found.length > 0 ? found : undefined
      },
      { what: 'a failed write' },
    )
    expect(bad).toMatchObject([{ name: 'aof_last_write_status', value: 'err' }])
  } finally {
    await there.close()
    await stop()
  }
})

/** A server whose files may not grow beyond some kilobytes. `always` would end it at the first failed write. */
async function startFullServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const program = findServer()
  if (program === undefined) throw new Error('no Redis server program: run node scripts/ensure-server.mjs')
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-full-'))
  const port = await freePort()
  const asked = { port, bind: '127.0.0.1', dir, save: '', appendonly: 'yes', appendfsync: 'everysec' }
  const words = Object.entries({ ...asked, 'maxmemory-policy': 'noeviction' }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ])
  const script = 'trap "" XFSZ; ulimit -f 64; exec -a "$0" "$@"'
  const child: ChildProcess = spawn('bash', ['-c', script, program.name, program.path, ...words], {
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  await until(async () => (await serverState(port)).kind === 'ready', {
    timeoutMs: 20_000,
    what: 'the small server',
  })
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      process.removeListener('exit', kill)
      kill()
      await ended
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

// No server of another version is at hand: what INFO would say is made up.
it.each([
  ['redis_version:7.0.0', '7.0.0', 'ok'],
  ['redis_version:7.2.4', '7.2.4', 'ok'],
  ['redis_version:8.0.1', '8.0.1', 'ok'],
  ['redis_version:6.2.14', '6.2.14', 'bad'],
  ['redis_version:5.0.7', '5.0.7', 'bad'],
  ['redis_version:7.2.4\r\nvalkey_version:8.1.1', '8.1.1', 'ok'],
  ['os:Linux', '', 'bad'],
])('version %j', async (line, value, verdict) => {
  const info = await store.call(['INFO'])
  const others = String(info).replace(/^(redis|valkey)_version:.*\r?\n/gm, '')
  const other: Store = {
    ...store,
    call: async (command) => (command[0] === 'INFO' ? `${line}\r\n${others}` : await store.call(command)),
  }
  const checks = await checkDurability(other, nothing)
  expect(checks[0]).toMatchObject({ name: 'version', value, verdict })
  expect(notOk(checks)).toHaveLength(verdict === 'ok' ? 0 : 1)
})
