import { expect, it } from 'vitest'
import { kim, type Make, refused } from './stage.js'

export function administration(make: Make): void {
  it('settings work at the next call of everyone, and are shown as they work', async () => {
    const stage = await make()
    const node = await stage.join()
    await stage.hub.configure(
      { heartbeat_ms: 77, max_recipients: '2', retention_ms: '9007199254740991' },
      'kim',
    )
    expect(await node.beat()).toMatchObject({ heartbeatMs: 77 })
    await stage.record.config('max_redrive', 'many')
    await stage.record.config('no_such', 1)
    const shown = await stage.shown((hub) => hub.configuration())
    const named = new Map(shown.map((each) => [each.name, each]))
    expect(named.get('heartbeat_ms')).toMatchObject({ value: 77, set: '77', default: 2000, bad: false })
    expect(named.get('max_recipients')).toMatchObject({ value: 2, set: '2' })
    expect(named.get('retention_ms')).toMatchObject({ value: 9_007_199_254_740_991 })
    expect(named.get('max_redrive')).toMatchObject({ value: 10, set: 'many', bad: true })
    expect(named.get('no_such')).toMatchObject({ set: '1', bad: true })
    expect(named.get('no_such')).not.toHaveProperty('value')
    const to = ['a', 'b', 'c'].map((host) => ({ host }))
    await refused(stage, 'TOO_MANY_RECIPIENTS', () => stage.accept({ to }))
  })

  it('refuses settings that are none, all of those named', async () => {
    const stage = await make()
    const bad: Readonly<Record<string, number | string>>[] = [
      {},
      { max_redrives: 5 },
      { heartbeat_ms: 49 },
      { heartbeat_ms: 'soon' },
      { heartbeat_ms: '' },
      { max_redrive: 1.5 },
      { max_redrive: Number.NaN },
      { retention_ms: -1 },
      { max_redrive: 5, heartbeat_ms: 1 },
    ]
    for (const changes of bad) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.configure(changes, 'kim'))
    }
  })

  it('principals are added, shown without their secrets, and revoked for good', async () => {
    const stage = await make()
    const added = await stage.hub.addPrincipal(
      { name: 'node 7/x', role: 'node', host: 'seven', scopes: ['/srv/a b'] },
      'kim',
    )
    expect(added.token).toMatch(/^hft_[\w-]{43}$/)
    const view = {
      name: 'node 7/x',
      role: 'node',
      host: 'seven',
      scopes: ['/srv/a b'],
      anySender: false,
      credential: 'token',
      createdAt: expect.any(Number),
      createdBy: 'kim',
    }
    expect(added.principal).toEqual(view)
    expect(await stage.shown((hub) => hub.principal('node 7/x'))).toEqual(view)
    expect(JSON.stringify(await stage.record.dump())).not.toContain(added.token)
    await refused(stage, 'PRINCIPAL_EXISTS', () =>
      stage.hub.addPrincipal({ name: 'node 7/x', role: 'viewer' }, 'kim'),
    )
    await stage.hub.revokePrincipal('node 7/x', { actor: 'kim', reason: 'sold' })
    expect(await stage.shown((hub) => hub.principal('node 7/x'))).toEqual({
      ...view,
      revokedAt: expect.any(Number),
      revokedBy: 'kim',
      revokedReason: 'sold',
    })
    const all = await stage.shown((hub) => hub.principals())
    expect(all.map(({ name }) => name)).toContain('node 7/x')
    await refused(stage, 'PRINCIPAL_EXISTS', () =>
      stage.hub.addPrincipal({ name: 'node 7/x', role: 'viewer' }, 'kim'),
    )
  })

  it('refuses principals that are none', async () => {
    const stage = await make()
    const bad: Parameters<typeof stage.hub.addPrincipal>[0][] = [
      { name: '', role: 'viewer' },
      { name: 'x', role: 'king' as 'viewer' },
      { name: 'x', role: 'node' },
      { name: 'x', role: 'node', host: 'A' },
      { name: 'x', role: 'node', host: 'a', scopes: ['relative'] },
      { name: 'x', role: 'viewer', host: 'a' },
      { name: 'x', role: 'operator', anySender: true },
      { name: 'x', role: 'viewer', certificate: 'no PEM' },
    ]
    for (const each of bad) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.addPrincipal(each, 'kim'))
    }
    for (const name of ['never', '..', 'a/b']) {
      await refused(stage, 'PRINCIPAL_NOT_FOUND', () => stage.hub.principal(name))
      await refused(stage, 'PRINCIPAL_NOT_FOUND', () => stage.hub.revokePrincipal(name, kim))
    }
    for (const name of ['', 'é', '\ud800']) {
      await refused(stage, 'INVALID_ARGUMENT', () => stage.hub.principal(name))
    }
  })
}
