import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEffects } from '../../src/client/effects.js'
import { type Client, openClient } from '../../src/client/open-client.js'
import { hashPayload } from '../../src/contract/payload-hash.js'
import { startHubServer, type TestHubServer } from '../support/http.js'
import { makeRecord, type TestRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// The same effect calls, through a hub over HTTP.

let server: TestServer
let record: TestRecord
let hub: TestHubServer
let client: Client

beforeAll(async () => {
  server = await startTestServer()
  record = await makeRecord(server, 'http-effects', { recovery_age_ms: 60_000 })
  hub = await startHubServer(record)
  client = openClient({ url: hub.url, actor: 'kim' })
})
afterAll(async () => {
  await client?.close()
  await hub?.close()
  await record?.close()
  await server?.stop()
})

const payloadHash = hashPayload({ amount: 5 })
const claim = { type: 'charge', payloadHash, executor: 'e1', grant: 'g1' }

describe('effects over HTTP', () => {
  it('run once, and answer the record from then on', async () => {
    const effects = createEffects(client, { executor: 'billing-1' })
    let ran = 0
    const charge = () =>
      effects.run({ id: 'order 17/a', type: 'charge', payload: { amount: 5 } }, () => {
        ran += 1
        return { charged: 5 }
      })
    expect(await charge()).toMatchObject({ kind: 'result', value: { charged: 5 }, replayed: false })
    expect(await charge()).toMatchObject({ kind: 'result', value: { charged: 5 }, replayed: true })
    expect(ran).toBe(1)
    const other = { id: 'order 17/a', type: 'charge', payload: { amount: 6 } }
    await expect(effects.run(other, () => 1)).rejects.toMatchObject({ code: 'PAYLOAD_MISMATCH' })
    expect(await client.effect('order 17/a')).toMatchObject({ status: 'done', executor: 'billing-1' })
  })

  it('keep results byte for byte', async () => {
    const result = '{"id":130775545883395173,"f":1.10,"a":[ ]}'
    const claimed = await client.claimEffect('exact', claim)
    const settlement = {
      executor: 'e1',
      grant: 'g1',
      epoch: claimed.epoch,
      outcome: { kind: 'result', result } as const,
    }
    expect(await client.settleEffect('exact', settlement)).toMatchObject({ kind: 'settled', status: 'done' })
    expect(await client.claimEffect('exact', { ...claim, grant: 'g2' })).toMatchObject({
      kind: 'result',
      result,
    })
    expect(await record.send('HGET', record.keys.effect('exact'), 'result')).toBe(result)
  })

  it('tell whoever lost the row as it stands, and change nothing', async () => {
    const { epoch } = await client.claimEffect('open', claim)
    const unknown = await client.claimEffect('open', { ...claim, executor: 'e2', grant: 'g2' })
    expect(unknown).toMatchObject({ kind: 'outcome_unknown', executor: 'e1', epoch })
    const before = await record.dump()
    const startedAt = unknown.kind === 'outcome_unknown' ? unknown.startedAt : 0
    const takeOver = { payloadHash, executor: 'e2', grant: 'g2', basis: 'probe', epoch, startedAt } as const
    expect(await client.takeOverEffect('open', takeOver)).toMatchObject({
      kind: 'refused',
      code: 'TOO_YOUNG',
      executor: 'e1',
    })
    const stale = { ...takeOver, startedAt: startedAt - 1 }
    expect(await client.takeOverEffect('open', stale)).toMatchObject({
      kind: 'refused',
      code: 'STALE_EPOCH',
      epoch,
    })
    const outcome = { kind: 'terminal', errorCode: 'no' } as const
    const settlement = { executor: 'e2', grant: 'g2', epoch, outcome }
    expect(await client.settleEffect('open', settlement)).toMatchObject({
      kind: 'refused',
      code: 'NOT_OWNER',
    })
    expect(await record.dump()).toEqual(before)
  })

  it("are resolved on an operator's word, kept with actor and evidence", async () => {
    await client.claimEffect('lost', claim)
    const word = { as: 'result', evidence: 'the bank says so', result: '{"ok":1.0}' } as const
    await expect(client.resolveEffect('lost', word, 'kim')).rejects.toMatchObject({ code: 'EXECUTING' })
    expect(await client.resolveEffect('lost', { ...word, force: true }, 'kim')).toMatchObject({
      status: 'done',
    })
    expect(await client.effect('lost')).toMatchObject({
      resolvedBy: 'kim',
      evidence: 'the bank says so',
      result: '{"ok":1.0}',
    })
    await expect(client.effect('none')).rejects.toMatchObject({ code: 'EFFECT_NOT_FOUND' })
  })
})
