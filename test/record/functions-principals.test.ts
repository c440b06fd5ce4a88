import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  record = await openRecord(server)
})
afterEach(() => record.close())

const token = 'a'.repeat(64)
const certificate = 'b'.repeat(64)
const producer = { name: 'shop', role: 'producer', tokenSha256: token } as const

it('a principal that is added again as it is gets the first answer', async () => {
  const first = await record.functions.addPrincipal(producer, 'kim')
  const before = await record.dump()
  expect(await record.functions.addPrincipal(producer, 'kim')).toMatchObject({ createdAt: first.createdAt })
  expect(await record.dump()).toEqual(before)
})

it.each([
  ['another role', { role: 'viewer' }],
  ['another token', { tokenSha256: 'c'.repeat(64) }],
  ['a certificate besides', { certificateSha256: certificate }],
] as const)('a name is used once: refused with %s', async (_, change) => {
  await record.functions.addPrincipal(producer, 'kim')
  await record.refused('PRINCIPAL_EXISTS', () =>
    record.functions.addPrincipal({ ...producer, ...change }, 'kim'),
  )
})

it('a name is used once: refused as it was once it is revoked', async () => {
  await record.functions.addPrincipal(producer, 'kim')
  await record.functions.revokePrincipal('shop', 'kim', 'left')
  await record.refused('PRINCIPAL_EXISTS', () => record.functions.addPrincipal(producer, 'kim'))
})

it('a certificate is pinned to one principal, until that is revoked', async () => {
  await record.functions.addPrincipal({ ...producer, certificateSha256: certificate }, 'kim')
  const other = { name: 'other', role: 'producer', certificateSha256: certificate } as const
  await record.refused('PRINCIPAL_EXISTS', () => record.functions.addPrincipal(other, 'kim'))
  await record.functions.revokePrincipal('shop', 'kim', 'left')
  await record.functions.addPrincipal(other, 'kim')
  expect(await record.send('HGET', record.keys.certificates, certificate)).toBe('other')
})

it('a principal needs a token or a certificate, and a host where it is a node, only there', async () => {
  const add = (changes: object) => record.functions.addPrincipal({ ...producer, ...changes }, 'kim')
  await record.refused('INVALID_ARGUMENT', () => add({ tokenSha256: undefined }))
  await record.refused('INVALID_ARGUMENT', () => add({ role: 'node' }))
  await record.refused('INVALID_ARGUMENT', () => add({ host: 'a' }))
  await record.refused('INVALID_ARGUMENT', () => add({ role: 'king' }))
})

it('a principal is revoked once: again it gets the first answer; one that never was is told so', async () => {
  await record.functions.addPrincipal(producer, 'kim')
  await record.refused('PRINCIPAL_NOT_FOUND', () => record.functions.revokePrincipal('nobody', 'kim', 'left'))
  const first = await record.functions.revokePrincipal('shop', 'kim', 'left')
  const before = await record.dump()
  const again = await record.functions.revokePrincipal('shop', 'lee', 'again')
  expect(again).toMatchObject({ revokedAt: first.revokedAt })
  expect(await record.dump()).toEqual(before)
})
