import { describe, expect, it } from 'vitest'
import { closeReasons, isScope, sessionScope, terminalOf } from '../../src/contract/sessions.js'

describe('scopes', () => {
  it.each(['/', '/srv', '/srv/a b', '/srv/.a/..b/c..', '/é', 'C:\\', 'c:\\work\\a', `/${'x'.repeat(1023)}`])(
    '%j is one',
    (text) => {
      expect(isScope(text)).toBe(true)
      expect(sessionScope(text)).toBe(text)
    },
  )

  it.each([
    '',
    'srv',
    './srv',
    '/srv/',
    '//srv',
    '/srv//a',
    '/srv/.',
    '/srv/./a',
    '/srv/..',
    '/../srv',
    '/srv\n',
    '/srv\0',
    '/\ud800',
    'C:',
    'C:srv',
    'C:\\srv\\',
    'C:\\srv\\..\\a',
    '\\srv',
    `/${'x'.repeat(1024)}`,
    `/${'é'.repeat(512)}`,
  ])('%j is none', (text) => {
    expect(isScope(text)).toBe(false)
    expect(() => sessionScope(text)).toThrow(/^INVALID_ARGUMENT a scope is a canonical absolute path/)
  })
})

it('whether a session comes back is fixed by the reason, but for a crash', () => {
  expect(closeReasons.map((reason) => [reason, terminalOf(reason)])).toEqual([
    ['disable', true],
    ['removed', true],
    ['reload', false],
    ['restart', false],
    ['crash', undefined],
  ])
})
