import { expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { type MessageInput, prepareMessage } from '../../src/contract/message.js'
import { sha256 } from '../support/record.js'

const message: MessageInput = {
  key: 'k',
  conversation: 'c',
  sender: 's',
  to: [{ host: 'a' }, { session: 's/1' }],
  payload: '{"n":1.10,"id":130775545883395173}',
}

function refusal(input: unknown): string {
  try {
    prepareMessage(input as MessageInput)
  } catch (error) {
    if (isHoldfastError(error, 'INVALID_ARGUMENT')) return error.message
    throw error
  }
  throw new Error('was taken')
}

it('keeps every byte of the payload and takes its digest', () => {
  const text = prepareMessage(message)
  expect(text.payload.toString()).toBe(message.payload)
  expect(text.sha256).toBe(sha256(message.payload as string))
  const bytes = Buffer.from([0, 255, 254])
  expect(prepareMessage({ ...message, payload: bytes }).payload).toEqual(bytes)
  expect(prepareMessage({ ...message, payload: '😀' }).payload).toEqual(Buffer.from('f09f9880', 'hex'))
})

it('names recipients as the functions take them, each once', () => {
  const { recipients } = prepareMessage({ ...message, to: [...message.to, { host: 'a' }] })
  expect(recipients).toEqual(['host:a', 'session:s/1'])
})

it('takes times as Unix ms, Date, or RFC 3339 with an offset', () => {
  for (const deliverBy of [1_764_430_000_000, new Date(1_764_430_000_000), '2025-11-29T16:26:40+01:00']) {
    expect(prepareMessage({ ...message, deliverBy }).deliverBy).toBe('1764430000000')
  }
  expect(prepareMessage(message).deliverBy).toBe('')
})

it('gives one fingerprint whatever the order and the deadlines, another for any other content', () => {
  const { fingerprint } = prepareMessage(message)
  const same = { ...message, to: [...message.to].reverse(), deliverBy: 1, executeBy: 2, contentType: 'x/y' }
  expect(prepareMessage(same).fingerprint).toBe(fingerprint)
  for (const change of [
    { conversation: 'x' },
    { sender: 'x' },
    { parent: 'x' },
    { payload: 'x' },
    { to: [{ host: 'a' }] },
    { to: [{ host: 'a' }, { session: 's/2' }] },
  ]) {
    expect(prepareMessage({ ...message, ...change }).fingerprint).not.toBe(fingerprint)
  }
  const split = [
    prepareMessage({ ...message, conversation: 'c","s' }),
    prepareMessage({ ...message, conversation: 'c', sender: '","s' }),
  ]
  expect(split[0]?.fingerprint).not.toBe(split[1]?.fingerprint)
})

it('names every bad member at once', () => {
  const text = refusal({ ...message, key: '', sender: 'é', deliverBy: 'tomorrow', extra: 1 })
  for (const member of ['key', 'sender', 'deliverBy', 'extra']) expect(text).toContain(member)
})

it.each([
  { to: [{ host: 'A' }] },
  { to: [{ host: 'a', session: 's' }] },
  { to: [{ queue: 'a' }] },
  { to: 'host:a' },
  { payload: { a: 1 } },
  { payload: '\ud800' },
  { payload: undefined },
  { deliverBy: -1 },
  { deliverBy: 1.5 },
  { deliverBy: new Date('x') },
  { deliverBy: '2025-11-29T16:26:40' },
  { deliverBy: new Date(-5) },
  { key: 'x'.repeat(256) },
])('refuses %j', (change) => {
  expect(refusal({ ...message, ...change })).toMatch(/^INVALID_ARGUMENT /)
})
