import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readlinkSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, it } from 'vitest'
import { createEffects } from '../../src/client/effects.js'
import { openClient } from '../../src/client/open-client.js'
import { openHub } from '../../src/hub/open-hub.js'
import { terminal } from '../../src/node/index.js'
import { openTestRecord, type TestRecord, type TestRecordOptions, testHost } from '../../src/testing/index.js'
import { openTestParts } from '../../src/testing/record.js'
import { until } from '../support/until.js'

const open: TestRecord[] = []
afterEach(async () => {
  for (const record of open.splice(0)) await record.close()
})

async function newRecord(options?: TestRecordOptions): Promise<TestRecord> {
  const record = await openTestRecord(options)
  open.push(record)
  return record
}

function cli({ redis }: TestRecord, ...command: string[]): string {
  return execFileSync('redis-cli', ['-u', redis, ...command], { encoding: 'utf8' }).trim()
}

describe('a record of its own', () => {
  it('hands a message to a node, and shows what became of it', async () => {
    const record = await newRecord()
    const node = await record.startNode({ execute: ({ payload }) => ({ said: payload.toString() }) })
    const message = await record.settled(await record.send({ payload: 'hello' }))
    expect(message.deliveries[0]?.attempts).toMatchObject([{ outcome: 'result', result: '{"said":"hello"}' }])
    expect(node.executed.map(({ target }) => target.host)).toEqual([testHost])
    expect((await record.hub.audit()).disagreements).toEqual([])
  })

  it('is another than its neighbour, and leaves nothing in the server', async () => {
    const [one, other] = [await newRecord({ settings: { max_redrive: 3 } }), await newRecord()]
    await one.send({ key: 'k', payload: 'a' })
    await other.send({ key: 'k', payload: 'b' })
    expect(one.redis).toBe(other.redis)
    expect((await one.hub.configuration()).find(({ name }) => name === 'max_redrive')?.value).toBe(3)
    expect(cli(one, 'CONFIG', 'GET', 'appendfsync')).toContain('always')
    await one.close()
    expect(cli(other, 'KEYS', `{${one.name}}*`)).toBe('')
    expect((await other.hub.counts())['queued']).toBe(1)
  })

  it('tells why a message is not settled', async () => {
    const record = await newRecord()
    const sent = await record.send()
    const waiting = record.settled(sent, 50)
    await expect(waiting).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await expect(waiting).rejects.toThrow(`${sent.id}.1 on ${testHost} is queued (stranded: no node of host`)
  })

  it('a later process of a node goes on with its mirror', async () => {
    const record = await newRecord()
    const first = await record.startNode({ execute: () => terminal('gone') })
    await record.settled(await record.send())
    await first.stop()
    const second = await record.startNode({ mirror: first.mirror, execute: () => 'done' })
    await record.settled(await record.send())
    expect([first.executed.length, second.executed.length]).toEqual([1, 1])
  })

  it('is served over HTTP, to clients and to nodes', async () => {
    const record = await newRecord()
    const { url } = await record.startServer()
    const client = openClient({ url })
    const node = await record.startNode({ http: { url }, execute: () => 'over http' })
    const { id } = await client.accept({
      key: 'k',
      conversation: 'c',
      sender: 's',
      to: [{ host: testHost }],
      payload: 'p',
    })
    expect((await client.waitFor(id, 10_000)).deliveries[0]?.attempts).toMatchObject([{ outcome: 'result' }])
    expect(node.executed).toHaveLength(1)
    await client.close()
  })

  it('refuses a setting that there is not, and leaves nothing behind', async () => {
    const settings = { no_setting: 1 } as TestRecordOptions['settings']
    await expect(openTestRecord({ settings })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    const record = await newRecord()
    expect(
      cli(record, 'KEYS', '*')
        .split('\n')
        .every((key) => key.startsWith(`{${record.name}}`)),
    ).toBe(true)
  })
})

describe('its clock', () => {
  it('goes ahead: a pause lapses, and the node that waits is woken', async () => {
    const record = await newRecord()
    const node = await record.startNode({ execute: () => 'done' })
    const until = (await record.clock.now()) + 3_600_000
    await record.hub.pause('hub', { reason: 'lunch', actor: 'kim', until })
    const sent = await record.send()
    await expect(record.settled(sent, 50)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await record.clock.advance(3_600_001)
    expect(await record.clock.now()).toBeGreaterThan(until)
    await record.settled(sent)
    expect(node.executed).toHaveLength(1)
  })

  it('wakes a node that waits over HTTP as well', async () => {
    const record = await newRecord()
    const { url } = await record.startServer()
    await record.startNode({ http: { url }, execute: () => 'done' })
    const until = (await record.clock.now()) + 600_000
    await record.hub.pause('hub', { reason: 'lunch', actor: 'kim', until })
    const sent = await record.send()
    await record.clock.advance(600_001)
    await record.settled(sent)
  })

  it('lets deadlines pass, and what is old be pruned', async () => {
    const record = await newRecord()
    const deliverBy = (await record.clock.now()) + 60_000
    const late = await record.send({ deliverBy })
    await record.clock.advance(60_001)
    await record.sweep('deadlines')
    expect((await record.settled(late)).deliveries[0]).toMatchObject({
      state: 'failed',
      reason: 'expired deliver_by',
    })
    await record.clock.advance(8 * 86_400_000)
    await record.sweep('retention')
    await expect(record.hub.message(late.id)).rejects.toMatchObject({ code: 'MESSAGE_NOT_FOUND' })
  })

  it('makes effects old enough to be taken over, by all three clocks', async () => {
    const record = await newRecord()
    const crashed = createEffects(record.hub, { executor: 'one', clock: record.clock.local })
    const request = { id: 'charge-1', type: 'charge', payload: { total: 10 } }
    await expect(
      crashed.run(request, () => {
        throw new Error('the connection was lost')
      }),
    ).rejects.toThrow('the connection was lost')
    const heir = createEffects(record.hub, { executor: 'two', clock: record.clock.local })
    const again = () =>
      heir.run({ ...request, probe: () => ({ kind: 'result', value: 'asked' }) }, () => 'charged twice')
    expect(await again()).toMatchObject({ kind: 'outcome_unknown', executor: 'one' })
    await record.clock.advance(120_000)
    expect(await again()).toMatchObject({ kind: 'result', value: 'asked' })
  })

  it('takes nobody for dead: who was silent over the jump may speak first, and keeps what is its own', async () => {
    const { record, functions } = await openTestParts()
    open.push(record)
    const [owner, peer] = ['owner', 'peer'].map((node) => ({ host: testHost, node, incarnation: 1 }))
    if (owner === undefined || peer === undefined) throw new Error('two nodes were to be made')
    for (const node of [owner, peer]) await functions.join(node, `of ${node.node}`, [], '0-0')
    await record.send()
    const { deliveries } = await functions.claim(owner, 1, 10)
    await functions.mirror(owner, deliveries)
    await functions.ack(owner, deliveries)
    await record.clock.advance(600_000)
    expect((await functions.claim(peer, 1, 10)).deliveries).toEqual([])
    await functions.claim(owner, 2, 10) // a claim is heard as well as a heartbeat
    expect((await functions.claim(peer, 2, 10)).deliveries).toEqual([])
    expect((await record.hub.delivery(deliveries[0]?.id ?? '')).owner).toBe('owner')
  })

  it('is not set back, nor by somebody who opens the record with the usual library', async () => {
    const record = await newRecord()
    for (const ms of [0, -1, 1.5, Number.NaN]) {
      await expect(record.clock.advance(ms)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
    await record.clock.advance(1_000_000)
    const other = await openHub({ redis: record.redis, hub: record.name })
    await other.accept({ key: 'k', conversation: 'c', sender: 's', to: [{ host: 'a' }], payload: 'p' })
    await other.close()
    expect(await record.clock.now()).toBeGreaterThan(Date.now() + 900_000)
  })
})

it('a server whose process was killed is ended by the next process that starts one', async () => {
  const left = await openAndSay('')
  left.child.kill('SIGKILL')
  await left.ended
  expect(existsSync(left.dir)).toBe(true)
  const next = await openAndSay('await record.close(); process.exit(0)')
  await next.ended
  for (const { dir, pid } of [left, next]) {
    expect(existsSync(dir)).toBe(false)
    await until(() => !serves(pid), { what: `the end of server ${pid}` })
  }
})

/** False for one that has ended and was not waited for yet, too. */
function serves(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) !== ''
  } catch {
    return false
  }
}

/** A process of the built code that opens a record, says where its server is, and goes on with this. */
async function openAndSay(rest: string) {
  const built = new URL('../../dist/testing/index.js', import.meta.url).href
  const program = `
    const { openTestRecord } = await import('${built}')
    const { readFileSync } = await import('node:fs')
    const record = await openTestRecord()
    const dir = record.dir.replace(/[/][^/]+$/, '')
    console.log(JSON.stringify({ dir, pid: JSON.parse(readFileSync(dir + '/server.json', 'utf8')).pid }))
    ${rest}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    ended.then(() => ['']),
  ])
  return { child, ended, ...(JSON.parse(String(line)) as { dir: string; pid: number }) }
}
