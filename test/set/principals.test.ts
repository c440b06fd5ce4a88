import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openClient } from '../../src/client/open-client.js'
import { digestOf } from '../../src/hub/principals.js'
import { certificate } from '../support/certificate.js'
import { messageOf, openSetStage, type SetStage } from './stage.js'

// A principal of a set is let in on every hub, by the same token.

let stage: SetStage
beforeAll(async () => {
  stage = await openSetStage()
})
afterAll(() => stage?.close())

const kim = { reason: 'left', actor: 'kim' }

describe('a principal of a set', () => {
  test('has one token for all hubs', async () => {
    const { token = '', principal } = await stage.set.addPrincipal({ name: 'root', role: 'operator' }, 'kim')
    expect(principal).toMatchObject({ name: 'root', role: 'operator', credential: 'token' })
    expect(principal).not.toHaveProperty('missing')
    for (const name of stage.names) {
      const { keys, send } = stage.record(name)
      expect(await send('HGET', keys.principal('root'), 'token_sha256')).toBe(digestOf(token))
    }
    const client = openClient({ url: stage.served.url, hubs: stage.names, token })
    for (const name of stage.names) {
      expect((await client.accept(messageOf(stage.conversationOf(name)))).id.startsWith(name)).toBe(true)
    }
    await client.close()
  })

  test('that one hub did not take keeps its token, and is finished with its digest', async () => {
    const { keys, send } = stage.record('hf-1')
    await send('RENAME', keys.identity, `${keys.tag}:aside`)
    const { token = '', principal } = await stage.set.addPrincipal({ name: 'p', role: 'producer' }, 'kim')
    await send('RENAME', `${keys.tag}:aside`, keys.identity)
    expect(principal.missing).toEqual(['hf-1'])
    expect(await stage.set.principal('p')).toMatchObject({ missing: ['hf-1'] })
    expect((await stage.set.principals()).find(({ name }) => name === 'p')?.missing).toEqual(['hf-1'])
    const again = { name: 'p', role: 'producer', tokenSha256: digestOf(token) } as const
    const finished = await stage.set.addPrincipal(again, 'kim')
    expect(finished.principal).not.toHaveProperty('missing')
    expect(finished).not.toHaveProperty('token')
    expect(await stage.set.addPrincipal(again, 'kim')).toEqual(finished)
    const other = { ...again, tokenSha256: digestOf('other') }
    await expect(stage.set.addPrincipal(other, 'kim')).rejects.toMatchObject({ code: 'PRINCIPAL_EXISTS' })
    await expect(stage.set.addPrincipal({ name: 'p', role: 'producer' }, 'kim')).rejects.toMatchObject({
      code: 'PRINCIPAL_EXISTS',
    })
  })

  test('with a certificate is added again harmlessly', async () => {
    const input = { name: 'cert', role: 'viewer', certificate: certificate.cert } as const
    const { principal } = await stage.set.addPrincipal(input, 'kim')
    expect(principal.credential).toBe('certificate')
    expect((await stage.set.addPrincipal(input, 'kim')).principal).toEqual(principal)
  })

  test('is let in until it is revoked on every hub', async () => {
    const { keys, send } = stage.record('hf-2')
    await send('RENAME', keys.identity, `${keys.tag}:aside`)
    await expect(stage.set.revokePrincipal('p', kim)).rejects.toMatchObject({
      code: 'SET_INCOMPLETE',
      message: expect.stringMatching(/is revoked on hf-0, hf-1; not on hf-2/),
    })
    await send('RENAME', `${keys.tag}:aside`, keys.identity)
    const half = await stage.set.principal('p')
    expect(half).toMatchObject({ missing: ['hf-0', 'hf-1'] })
    expect(half).not.toHaveProperty('revokedAt')
    await stage.set.revokePrincipal('p', kim)
    expect(await stage.set.principal('p')).toMatchObject({ revokedReason: 'left' })
    await expect(stage.set.principal('nobody')).rejects.toMatchObject({ code: 'PRINCIPAL_NOT_FOUND' })
    await expect(stage.set.revokePrincipal('nobody', kim)).rejects.toMatchObject({
      code: 'PRINCIPAL_NOT_FOUND',
    })
  })
})
