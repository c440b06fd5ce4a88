import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, startCli } from '../cli/run-cli.js'
import { killChildren, readMarks, startNodeProcess } from '../support/child.js'
import { freshPath, stopNodes } from '../support/nodes.js'
import { makeRecord, settlement, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

let server: TestServer
let record: TestRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterEach(async () => {
  await killChildren()
  await stopNodes()
  await record.checkInvariants()
  await record.close()
})
afterAll(() => server?.stop())

const fast = { heartbeat_ms: 100, stale_after_ms: 1000 }

async function acceptThree(): Promise<[string, string, string]> {
  const ids: string[] = []
  for (let at = 0; at < 3; at += 1) {
    const { deliveries } = await record.accept({ conversation: `c${at}`, to: [{ host: 'h1' }] })
    ids.push(deliveries[0]?.id ?? '')
  }
  const [poisonous = '', ...neighbours] = ids
  return [poisonous, neighbours[0] ?? '', neighbours[1] ?? '']
}

function nodeOptions(node = 'a') {
  const marks = freshPath('marks')
  writeFileSync(marks, '')
  return { redis: server.url, hub: record.name, host: 'h1', node, mirror: freshPath('db'), marks }
}

/** What the node's last claim was given: ids in order. */
async function lastAnswer(node: string): Promise<string[]> {
  const answer = String(await record.send('HGET', record.keys.node('h1', node), 'request_answer'))
  return answer.split(' ').map((word) => word.split(':')[0] ?? '')
}

describe('faults.md 9: a delivery makes its node exit before the handoff', () => {
  it.each(['claim.answered', 'copy.stored', 'take.before'] as const)(
    'at %s, restarted by its supervisor: it is held as poison, its neighbours are delivered',
    async (point) => {
      record = await makeRecord(server, `poison-${point.replace('.', '-')}`, { ...fast, max_takeovers: 3 })
      const [poisonous, ...neighbours] = await acceptThree()
      const options = nodeOptions()
      for (let crashes = 0; crashes < 3; crashes += 1) {
        // The first claim after a restart may answer nothing: the fault comes with the delivery.
        const child = startNodeProcess({ ...options, at: { point, signal: 'SIGKILL' } })
        await child.line('hit')
        expect(await child.ended).toBe('SIGKILL')
        const given = await lastAnswer('a')
        expect(given, `after crash ${crashes + 1}`).toEqual(
          crashes === 0 ? [poisonous, ...neighbours] : [poisonous],
        )
        expect(Number((await record.fields(poisonous))['takeovers'] ?? 0)).toBe(crashes)
      }
      startNodeProcess(options)
      expect(await Promise.all(neighbours.map((id) => settlement(record, id)))).toEqual(['done', 'done'])
      expect(await record.fields(poisonous)).toMatchObject({
        state: 'held',
        held_reason: 'poison',
        takeovers: '3',
        attempts: '0',
      })
      expect((await record.hub.held()).map(({ id }) => id)).toEqual([poisonous])
      const executed = readMarks(options.marks).map(({ delivery }) => delivery)
      expect(new Set(executed)).toEqual(new Set(neighbours))
    },
  )

  it('with a peer on the host that takes over each time: the same', async () => {
    record = await makeRecord(server, 'poison-peers', { ...fast, max_takeovers: 2 })
    const [poisonous, ...neighbours] = await acceptThree()
    const at = { point: 'copy.stored', signal: 'SIGKILL' } as const
    for (const name of ['a', 'b']) {
      const child = startNodeProcess({ ...nodeOptions(name), at })
      await child.line('hit')
      await child.ended
    }
    expect(await lastAnswer('b')).toEqual([poisonous])
    startNodeProcess(nodeOptions('c'))
    expect(await Promise.all(neighbours.map((id) => settlement(record, id)))).toEqual(['done', 'done'])
    expect(await settlement(record, poisonous)).toBe('held')
    expect(await record.fields(poisonous)).toMatchObject({ held_reason: 'poison', takeovers: '2' })
  })
})

describe('faults.md 9: three rolling deploys during one long handler', () => {
  it('bury nothing: neither the handler nor what waits behind it', async () => {
    record = await makeRecord(server, 'deploys', {
      heartbeat_ms: 100,
      stale_after_ms: 60_000,
      max_takeovers: 1,
    })
    const folder = makeFolder()
    const gate = join(folder.path, 'gate')
    const exec = `[ "$HOLDFAST_NODE" = long ] && while [ ! -e ${gate} ]; do sleep 0.05; done; echo '"ok"'`
    const start = (node: string) =>
      startCli(
        ['node', '--host', 'h1', '--node', node, '--redis', server.url, '--hub', record.name].concat([
          '--mirror',
          join(folder.path, `${node}.db`),
          '--exec',
          exec,
        ]),
        { cwd: folder.path, env: { HOLDFAST_NODE: node } },
      )
    const long = start('long')
    const { deliveries } = await record.accept({ conversation: 'c1', to: [{ host: 'h1' }] })
    const running = deliveries[0]?.id ?? ''
    await until(async () => (await record.fields(running))['attempt_status'] === 'executing', {
      timeoutMs: 30_000,
    })
    const behind = await record.acceptMany(4, { conversation: 'c1', to: [{ host: 'h1' }] })
    await until(async () => (await record.states(behind)).every((state) => state === 'delivered'))

    for (let deploy = 1; deploy <= 3; deploy += 1) {
      const next = start('next')
      await until(
        async () =>
          (await record.send('HGET', record.keys.node('h1', 'next'), 'incarnation')) === String(deploy),
        { timeoutMs: 30_000, what: `deploy ${deploy}` },
      )
      const [early = ''] = await record.acceptMany(1, { conversation: `d${deploy}`, to: [{ host: 'h1' }] })
      await until(async () => (await record.fields(early))['attempt_status'] !== undefined)
      next.child.kill('SIGTERM')
      expect((await next.ended).code).toBe(0)
    }
    expect(existsSync(gate)).toBe(false)
    expect(await record.fields(running)).toMatchObject({
      attempt_status: 'executing',
      owner: 'long',
      epoch: '1',
    })
    long.child.kill('SIGTERM')
    const last = start('next')
    writeFileSync(gate, '')
    expect((await long.ended).code).toBe(0)
    for (const id of [running, ...behind]) expect(await settlement(record, id)).toBe('done')
    for (const id of behind) expect((await record.fields(id))['takeovers'] ?? '0').toBe('0')
    expect(await record.hub.held()).toEqual([])
    last.child.kill('SIGTERM')
    await last.ended
    folder.remove()
  }, 180_000)
})
