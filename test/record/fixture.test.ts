import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Names } from '../../scripts/fixture/scenario.mjs'
import { viewOf } from '../../scripts/fixture/view.mjs'
import { type Hub, openHub } from '../../src/hub/open-hub.js'
import { startNode, stopNodes } from '../support/nodes.js'
import { startServerProcess, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// Records as earlier releases wrote them (scripts/make-fixture.mjs), read and finished by this one.

interface Told {
  readonly release: string
  readonly names: Names
  readonly expected: Awaited<ReturnType<typeof viewOf>>
}

const folder = fileURLToPath(new URL('../fixtures', import.meta.url))
const fixtures = readdirSync(folder).filter((name) => name.startsWith('record-'))

it('there is a fixture', () => {
  expect(fixtures).toContain('record-0.1.0')
})

describe.each(fixtures)('%s', (fixture) => {
  const file = join(folder, fixture, 'expected.json')
  const { names, expected } = JSON.parse(readFileSync(file, 'utf8')) as Told
  const idOf = (name: string) => names.deliveries[name] ?? `no delivery ${name}`
  let server: TestServer
  let hub: Hub

  beforeAll(async () => {
    server = await startServerProcess(undefined, join(folder, fixture))
    hub = await openHub({ redis: server.url })
    await hub.repair()
  })
  afterAll(async () => {
    await stopNodes()
    await hub?.close()
    await server?.stop()
  })

  /** What the release that wrote the fixture told of it, as this one tells it now. */
  async function view(): Promise<Told['expected']> {
    return JSON.parse(JSON.stringify(await viewOf(hub, names)))
  }

  async function expectNothingWrong(): Promise<void> {
    expect((await hub.audit()).disagreements).toEqual([])
  }

  it('is read as the release that wrote it read it', async () => {
    expect(await view()).toEqual(expected)
  })

  it('is whole, and what was cut in it is completed', async () => {
    await expectNothingWrong()
    const cut = await hub.message(idOf('cut').replace(/\.1$/, ''))
    expect(cut).toMatchObject({ recipients: 4, fanOut: 'complete' })
    expect(cut.deliveries.map(({ host }) => host)).toEqual(['build-1', 'build-2', 'build-4', 'build-5'])
  })

  it('answers a repeated message with the first one', async () => {
    const { key, sender, conversation, contentType = '' } = expected.deliveries['done']?.message ?? {}
    const first = {
      key: key ?? '',
      sender: sender ?? '',
      conversation: conversation ?? '',
      contentType,
      to: [{ host: 'build-1' }],
      payload: '{"name":"done","n":130775545883395173}',
    }
    expect(await hub.accept(first)).toMatchObject({ replayed: true, deliveries: [{ id: idOf('done') }] })
    await expect(hub.accept({ ...first, payload: 'other' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_MISMATCH',
    })
  })

  it('is attested without a doubt, though its server is another one', async () => {
    const replicationId = /master_replid:(\w+)/.exec(server.cli('INFO', 'replication'))?.[1]
    const identity = (field: string) => server.cli('HGET', '{hf}:identity', field)
    await until(() => identity('attested') === replicationId, { what: 'the record attested' })
    expect([identity('generation'), identity('rewound_why')]).toEqual(['0', ''])
    expect(server.cli('EXISTS', '{hf}:doubted')).toBe('0')
    expect(await view()).toEqual(expected)
  })

  it('is finished by nodes of this release; nothing is run twice, and only what nobody can know is unknown', async () => {
    const execute = () => 'by this release'
    const reach = { redis: server.url, scopes: ['/srv/agents'], execute }
    const nodes = [
      await startNode({ ...reach, host: 'build-1', node: 'n2' }),
      await startNode({ ...reach, host: 'build-2' }),
      await startNode({ ...reach, host: 'build-4' }),
      // The next process of the node whose mirror is in the fixture.
      await startNode({ ...reach, host: 'build-5', node: 'm1', mirror: join(server.dir, 'build-5.db') }),
    ]
    const finished = [
      ...['not-sent', 'delivered', 'claimed', 'mirrored', 'queued', 'to-session', 'to-unjoined'],
      ...['cut', 'cut-2', 'granted', 'queued-behind', 'unsent'],
    ]
    const done = async (name: string) => (await hub.delivery(idOf(name))).attempts.at(-1)?.status === 'done'
    const openAttempts = ['executing', 'started'].map((name) => `${idOf(name)}/1`)
    await until(
      async () => {
        const unknown = new Set((await hub.unknown()).map(({ id }) => id))
        const ends = await Promise.all(finished.map(done))
        return ends.every(Boolean) && openAttempts.every((id) => unknown.has(id))
      },
      { timeoutMs: 40_000, what: 'everything finished, or listed as unknown' },
    )

    const after = await view()
    const statuses = (name: string) => after.deliveries[name]?.attempts.map(({ status }) => status)
    for (const name of ['not-sent', 'granted']) expect(statuses(name), name).toEqual(['not_sent', 'done'])
    for (const name of finished.filter((each) => !['not-sent', 'granted'].includes(each)))
      expect(statuses(name), name).toEqual(['done'])
    // It was executed before, and its outcome waited in the mirror.
    expect(after.deliveries['unsent']?.attempts).toMatchObject([{ result: '{"n":1.10}' }])
    const executed = nodes.flatMap((node) => node.executed.map(({ deliveryId }) => deliveryId))
    const here = finished.filter((name) => name !== 'unsent').map(idOf)
    const message = await hub.message(idOf('cut').replace(/\.1$/, ''))
    const completed = message.deliveries.slice(2).map(({ id }) => id)
    expect(executed.toSorted()).toEqual([...here, ...completed].toSorted())

    expect(Object.keys(after.unknown).toSorted()).toEqual(
      [...Object.keys(expected.unknown), ...openAttempts].toSorted(),
    )
    expect(Object.values(after.unknown)).not.toContain('history_lost')
    const touched = new Set([...finished, 'executing', 'started'])
    for (const [name, before] of Object.entries(expected.deliveries))
      if (!touched.has(name)) expect(after.deliveries[name], name).toEqual(before)
    expect([after.held, after.pending]).toEqual([expected.held, []])
    await expectNothingWrong()
  })

  it('is settled by an operator, to the last delivery', async () => {
    const act = { actor: 'kim', reason: 'looked at' }
    const known = { evidence: 'the target has no trace of it' }
    await hub.lift('pause', 'conversation:c-parked', 'kim')
    await hub.lift('hold', 'conversation:c-fenced', 'kim')
    for (const session of ['agent-restarting', 'agent-disabled'])
      await hub.openSession(session, { host: 'build-1', scope: '/srv/agents' }, 'kim')
    for (const name of ['looked-at', 'corrupt']) await hub.release(idOf(name), act)
    await hub.reject(idOf('on-retired'), act)
    for (const name of ['outcome-unknown', 'executing', 'started'])
      await hub.resolveAttempt(`${idOf(name)}/1`, { as: 'result', ...known }, 'kim')
    await hub.resolveDelivery(idOf('in-doubt'), { as: 'queued', ...known }, 'kim')
    await until(
      async () => {
        const messages = Object.values(names.deliveries).map((id) => hub.message(id.replace(/\.\d+$/, '')))
        return (await Promise.all(messages)).every(({ settledAt }) => settledAt !== undefined)
      },
      { timeoutMs: 30_000, what: 'every message settled' },
    )
    expect([await hub.unknown(), await hub.held(), await hub.pending()]).toEqual([[], [], []])
    await expectNothingWrong()
  })

  it('keeps what is known of its effects', async () => {
    const claim = (id: string) => {
      const payloadHash = expected.effects[id]?.payloadHash ?? ''
      return hub.claimEffect(id, { type: 'mail', payloadHash, executor: 'mailer-2', grant: `again-${id}` })
    }
    expect(await claim('mail-done')).toEqual({
      kind: 'result',
      result: '{"messageId":130775545883395173}',
      epoch: 1,
    })
    expect(await claim('mail-terminal')).toMatchObject({ kind: 'terminal', errorCode: 'no_such_address' })
    expect(await claim('mail-executing')).toMatchObject({ kind: 'outcome_unknown', executor: 'mailer-1' })
    expect(await claim('mail-free')).toMatchObject({ kind: 'claimed', epoch: 2 })
  })
})
