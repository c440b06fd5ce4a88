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

const asTime = 'must be RFC 3339 with an offset, Unix milliseconds or a Date'
const asPayload = 'must be a string or bytes (Buffer, Uint8Array)'
const known = 'key, conversation, sender, to, payload, contentType, parent, resendOf, deliverBy, executeBy'

it.each<[change: object, says: string]>([
  [{ to: [{ host: 'A' }] }, 'to.0.host: must match [a-z0-9._-], 1 to 63 long, alphanumeric at both ends'],
  [{ to: [{ host: 'a', session: 's' }] }, 'to.0: must be { host } or { session }, not { host, session }'],
  [{ to: [{ hosst: 'a' }] }, 'to.0: must be { host } or { session }, not { hosst }'],
  [{ to: ['host:a'] }, 'to.0: must be { host } or { session }, not a string'],
  [{ to: 'host:a' }, 'to: must be a list, not a string'],
  [{ payload: { secret: 1 } }, `payload: ${asPayload}, not an object: JSON.stringify it`],
  [{ payload: [7] }, `payload: ${asPayload}, not a list: JSON.stringify it`],
  [{ payload: 7 }, `payload: ${asPayload}, not a number: JSON.stringify it`],
  [{ payload: '\ud800' }, 'payload holds a lone surrogate, which has no UTF-8 form; pass bytes'],
  [{ payload: undefined }, 'payload: is required'],
  [{ deliverBy: -1 }, 'deliverBy: must be a time from 1970 on'],
  [{ deliverBy: 1.5 }, `deliverBy: ${asTime}, not 1.5`],
  [{ deliverBy: new Date('x') }, `deliverBy: ${asTime}, not an invalid Date`],
  [{ deliverBy: '2025-11-29T16:26:40' }, `deliverBy: ${asTime}, not "2025-11-29T16:26:40"`],
  [{ deliverBy: 'x'.repeat(40) }, `deliverBy: ${asTime}, not a string`],
  [{ deliverBy: new Date(-5) }, 'deliverBy: must be a time from 1970 on'],
  [{ key: 'x'.repeat(256) }, 'key: must be 1 to 255 bytes of printable ASCII'],
  [{ key: undefined, sender: 5 }, 'key: is required; sender: must be a string, not 5'],
  [{ extra: 1 }, `message: unknown member "extra" (known: ${known})`],
])('refuses %j', (change, says) => {
  expect(refusal({ ...message, ...change })).toBe(`INVALID_ARGUMENT ${says}`)
})

it('refuses what is no message', () => {
  expect(refusal(undefined)).toBe('INVALID_ARGUMENT message: is required')
  expect(refusal('text')).toBe('INVALID_ARGUMENT message: must be an object, not a string')
})
