import { describe, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { redactUrl } from '../../src/record/address.js'
import { reachOf } from '../../src/record/reach.js'

const optionsOf = (url: string) => reachOf(url).options(undefined, {})

describe('an address of the record', () => {
  it.each([
    ['redis://h', { host: 'h', port: 6379, db: 0 }],
    ['redis://h:7000/3', { host: 'h', port: 7000, db: 3 }],
    ['redis://u:p%40ss@h', { username: 'u', password: 'p@ss' }],
    ['redis://:p@h', { password: 'p' }],
    ['redis://[::1]:7000', { host: '::1', port: 7000 }],
    ['rediss://h', { host: 'h', tls: {} }],
  ])('%s is one server', (url, options) => {
    expect(reachOf(url).kind).toBe('server')
    expect(optionsOf(url)).toMatchObject(options)
  })

  it('of Sentinels names all of them, the primary, and how they are spoken to', () => {
    const url = 'redis-sentinel://u:p@a:1,b/main?db=2&sentinelUser=s&sentinelPassword=t'
    expect(reachOf(url).kind).toBe('sentinel')
    expect(optionsOf(url)).toMatchObject({
      sentinels: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26379 },
      ],
      name: 'main',
      role: 'master',
      db: 2,
      username: 'u',
      password: 'p',
      sentinelUsername: 's',
      sentinelPassword: 't',
    })
  })

  it('of a Cluster is looked up at each connection', () => {
    expect(reachOf('redis-cluster://a:1,b:2').kind).toBe('cluster')
    expect(optionsOf('redis-cluster://u:p@a:1')).toMatchObject({
      username: 'u',
      Connector: expect.any(Function),
    })
  })

  it('with TLS takes what it is given, for each kind', () => {
    const tls = { ca: 'CA', cert: 'C', key: 'K' }
    for (const url of ['rediss://h', 'rediss-cluster://h', 'rediss-sentinel://h/main']) {
      expect(reachOf({ url, tls }).options(undefined, {})).toMatchObject({ tls })
    }
    expect(() => reachOf({ url: 'redis://h', tls })).toThrow(/TLS material belongs to a rediss/)
  })

  it.each([
    ['redis://u:secret@h', 'redis://u:***@h:6379'],
    ['redis://:secret@h/1', 'redis://:***@h:6379/1'],
    ['redis-cluster://u:secret@a:1,b:2', 'redis-cluster://u:***@a:1,b:2'],
    [
      'rediss-sentinel://u:secret@a:1/main?sentinelPassword=secret2',
      'rediss-sentinel://u:***@a:1/main?sentinelPassword=***',
    ],
    ['redis://h', 'redis://h:6379'],
  ])('%s is shown as %s', (url, shown) => {
    expect(redactUrl(url)).toBe(shown)
  })

  it.each([
    ['', /not a URL/],
    ['h:6379', /redis:\/\/, redis-sentinel:\/\/ or redis-cluster:\/\/|not a URL/],
    ['http://u:secret@h', /starts with redis:\/\/.*not http:/],
    ['redis://h:0', /port/],
    ['redis://h:70000', /port/],
    ['redis://h:secret', /not a URL/],
    ['redis://a,b', /names one server/],
    ['redis://h/x', /database .* no number/],
    ['redis://h?family=secret', /nothing after a question mark/],
    ['redis://u:%zz@h', /not a URL/],
    ['redis-cluster://h/1', /no database but 0/],
    ['redis-sentinel://h', /name of the primary/],
    ['redis-sentinel://h/main?password=secret', /db, sentinelUser, sentinelPassword/],
  ])('%s is refused, and not repeated', (url, why) => {
    const refuse = () => redactUrl(url)
    expect(refuse).toThrow(why)
    try {
      refuse()
    } catch (error) {
      expect(isHoldfastError(error, 'INVALID_ARGUMENT')).toBe(true)
      expect(String(error)).not.toContain('secret')
    }
  })
})
