import { describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/contract/message.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord, TestNode } from '../support/record.js'
import { until } from '../support/until.js'

let record: OpenRecord
let node: TestNode

eachRecord(async (made) => {
  record = made
  node = await record.join('a', 'n1')
})

const hosts = (count: number) => Array.from({ length: count }, (_, at) => ({ host: `h${at}` }))

describe('max_queued_per_host', () => {
  it('is off by default', async () => {
    expect(await record.acceptMany(150)).toHaveLength(150)
  })

  it('refuses the whole message for one full host, by name, with nothing stored', async () => {
    await record.config('max_queued_per_host', 2)
    await record.acceptMany(2)
    const to = [{ host: 'b' }, { host: 'a' }]
    const refusal = await record.refused('HOST_FULL', () => record.accept({ to }))
    expect(refusal).toMatch(/host a has 2 entries queued, max_queued_per_host is 2/)
    expect(await record.accept({ to: [{ host: 'b' }] })).toMatchObject({ made: 1 })
  })

  it('refuses it for a recipient beyond the inline fan-out too', async () => {
    await record.config('max_queued_per_host', 1)
    await record.config('inline_fan_out', 1)
    await record.acceptMany(1)
    await record.refused('HOST_FULL', () => record.accept({ to: [{ host: 'b' }, { host: 'a' }] }))
  })

  it('answers the repeat of an accepted key on a full host', async () => {
    await record.config('max_queued_per_host', 1)
    const message = { key: 'k', payload: 'p' }
    const first = await record.accept(message)
    expect(await record.accept(message)).toMatchObject({ id: first.id, replayed: true })
  })

  it('has room again once the entries have left the stream, not before', async () => {
    await record.config('max_queued_per_host', 1)
    await record.acceptMany(1)
    const claimed = await record.claimAll(node)
    await record.refused('HOST_FULL', () => record.accept())
    await record.functions.mirror(node, claimed)
    await record.functions.ack(node, claimed)
    expect(await record.accept()).toMatchObject({ made: 1 })
  })

  it('does not stop a fan-out that was accepted, a release, or a lift', async () => {
    await record.config('inline_fan_out', 1)
    await record.functions.hold('hub', 'legal', 'kim')
    const [one = '', two = ''] = await record.acceptMany(2)
    await record.claimAll(node)
    const { id } = await record.accept({ to: [{ host: 'b' }, { host: 'a' }] })
    await record.config('max_queued_per_host', 1)
    expect(await record.functions.fanOut(id, 10)).toMatchObject({ made: 2 })
    expect(await record.functions.release(one, 'kim', 'r')).toMatchObject({ state: 'queued' })
    await record.functions.lift('hold', 'hub', 'kim')
    expect(await record.states([two])).toEqual(['queued'])
  })
})

describe('max_recipients', () => {
  it('takes as many and refuses one more, with nothing stored', async () => {
    await record.config('max_recipients', 3)
    expect(await record.accept({ to: hosts(3) })).toMatchObject({ recipients: 3 })
    const refusal = await record.refused('TOO_MANY_RECIPIENTS', () => record.accept({ to: hosts(4) }))
    expect(refusal).toContain('4 recipients, max_recipients is 3')
  })

  it('counts a recipient that is named twice once', async () => {
    await record.config('max_recipients', 1)
    expect(await record.accept({ to: [{ host: 'a' }, { host: 'a' }] })).toMatchObject({ recipients: 1 })
  })
})

describe('max_payload_bytes', () => {
  it('takes as many bytes, refuses one more, and counts bytes, not characters', async () => {
    await record.config('max_payload_bytes', 8)
    expect(await record.accept({ payload: '12345678' })).toMatchObject({ made: 1 })
    expect(await record.accept({ payload: Buffer.alloc(8, 255) })).toMatchObject({ made: 1 })
    expect(await record.accept({ payload: '' })).toMatchObject({ made: 1 })
    const refusal = await record.refused('PAYLOAD_TOO_LARGE', () => record.accept({ payload: '123456789' }))
    expect(refusal).toContain('9 bytes, max_payload_bytes is 8')
    await record.refused('PAYLOAD_TOO_LARGE', () => record.accept({ payload: 'äääää' }))
  })

  it('is 1 MiB by default: taken to the byte, and handed out whole', async () => {
    const payload = Buffer.alloc(1_048_576, 'x')
    await record.accept({ payload })
    await record.refused('PAYLOAD_TOO_LARGE', () => record.accept({ payload: Buffer.alloc(1_048_577) }))
    const [claimed] = await record.claimAll(node)
    expect(claimed?.payload.equals(payload)).toBe(true)
  })

  it('does not strand what was accepted under a larger one', async () => {
    const payload = Buffer.alloc(4000, 'x')
    for (let sent = 0; sent < 3; sent += 1) await record.accept({ payload })
    await record.config('max_payload_bytes', 1)
    await record.config('max_claim_bytes', 1024)
    expect(await record.claimAll(node)).toHaveLength(3)
  })
})

describe('resend_of', () => {
  it('is kept on the message, and is no part of what a key stands for', async () => {
    const first = await record.accept()
    const message: Partial<MessageInput> = { key: 'again', resendOf: first.id, payload: 'p' }
    const second = await record.accept(message)
    expect(await record.send('HGET', record.keys.message(second.id), 'resend_of')).toBe(first.id)
    expect(await record.send('HGET', record.keys.message(first.id), 'resend_of')).toBeNull()
    expect(await record.accept(message)).toMatchObject({ id: second.id, replayed: true })
  })
})

describe('deliverBy', () => {
  it('that has passed when it is claimed makes it failed, expired, and no attempt', async () => {
    const deliverBy = (await record.nowMs()) - 1
    const [id = ''] = await record.acceptMany(1, { deliverBy })
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.fields(id)).toMatchObject({
      state: 'failed',
      failed_code: 'expired',
      failed_detail: 'deliver_by',
      attempts: '0',
    })
  })

  it('counts until the claim only: what is claimed in time is executed', async () => {
    const deliverBy = (await record.nowMs()) + 1500
    const [id = ''] = await record.acceptMany(1, { deliverBy })
    const [item = { id, epoch: 0 }] = await record.deliverAll(node)
    await until(async () => (await record.nowMs()) > deliverBy)
    expect(await record.begin(node, item)).toMatchObject({ attempt: `${id}/1` })
  })

  it('counts while it is parked, and while it is held: at the claim after', async () => {
    const deliverBy = (await record.nowMs()) + 300
    await record.functions.pause('conversation:c1', 'wait', 'kim')
    await record.functions.hold('conversation:c2', 'legal', 'kim')
    const [parked = ''] = await record.acceptMany(1, { deliverBy })
    const [held = ''] = await record.acceptMany(1, { deliverBy, conversation: 'c2' })
    await record.claimAll(node)
    expect(await record.states([parked, held])).toEqual(['queued', 'held'])
    await until(async () => (await record.nowMs()) > deliverBy)
    await record.functions.lift('pause', 'conversation:c1', 'kim')
    await record.functions.release(held, 'kim', 'r')
    expect(await record.claimAll(node)).toEqual([])
    expect(await record.states([parked, held])).toEqual(['failed', 'failed'])
  })
})

describe('executeBy', () => {
  it('that has passed makes a begin fail it, expired, and the answer stays the same', async () => {
    const executeBy = (await record.nowMs()) - 1
    const [id = ''] = await record.acceptMany(1, { executeBy })
    const [item = { id, epoch: 0 }] = await record.deliverAll(node)
    const begin = () => record.functions.begin(node, [{ ...item, grant: 'g' }])
    expect(await begin()).toMatchObject([{ ok: false, code: 'EXPIRED', state: 'failed' }])
    expect(await record.fields(id)).toMatchObject({ failed_detail: 'execute_by', attempts: '0' })
    await record.itemRefused('EXPIRED', begin)
  })

  it('does not end an attempt that began in time, but the next after a not_sent', async () => {
    const executeBy = (await record.nowMs()) + 1500
    const [id = ''] = await record.acceptMany(1, { executeBy })
    const [item = { id, epoch: 0 }] = await record.deliverAll(node)
    const open = await record.begin(node, item)
    await until(async () => (await record.nowMs()) > executeBy)
    const outcome = { kind: 'not_sent', errorCode: 'busy' } as const
    const [answer] = await record.functions.report(node, [
      { id: open.attempt, grant: open.grant, key: 'k', outcome },
    ])
    expect(answer).toMatchObject({ ok: true, state: 'delivered' })
    const [again] = await record.functions.begin(node, [{ ...item, grant: 'second' }])
    expect(again).toMatchObject({ ok: false, code: 'EXPIRED' })
  })
})
