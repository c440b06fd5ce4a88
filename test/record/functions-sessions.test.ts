import { describe, expect, it } from 'vitest'
import { type CloseReason, closeReasons, isScope, terminalOf } from '../../src/contract/sessions.js'
import { readSession } from '../../src/hub/sessions.js'
import { readerOf } from '../../src/record/reader.js'
import { eachRecord } from '../support/each-record.js'
import type { OpenRecord } from '../support/record.js'
import { type SessionTools, scope, sessionTools, targetMissing } from '../support/sessions.js'

let record: OpenRecord
let sessions: SessionTools

eachRecord((made) => {
  record = made
  sessions = sessionTools(record)
})

/** Marks the session missing, as an attempt reports it. */
async function goMissing(id = 's') {
  const node = await sessions.join('a', `reporter-${id}`)
  const open = await sessions.begin(node, id, `conversation of ${id}`)
  expect(await sessions.report(open, targetMissing, node)).toMatchObject({ ok: true })
  await record.functions.leave(node)
}

describe('what a session is', () => {
  it('never opened, open, closed and missing are four answers', async () => {
    const read = () => readSession(readerOf(record.store, record.keys), record.keys, 's')
    await record.refused('SESSION_NOT_FOUND', read)
    await record.refused('SESSION_NOT_FOUND', () => sessions.close('s', { epoch: 1 }))
    await record.refused('NO_ROUTE', () => sessions.send())
    await sessions.open()
    expect(await read()).toMatchObject({ state: 'open', host: 'a', scope, openedBy: 'kim' })
    await sessions.close()
    expect(await read()).toMatchObject({
      state: 'closed',
      reason: 'reload',
      terminal: false,
      drained: true,
      abandoned: 0,
      closedBy: 'kim',
    })
    await sessions.open()
    const again = await read()
    expect(again).toMatchObject({ state: 'open' })
    for (const gone of ['reason', 'terminal', 'drained', 'abandoned', 'closedAt']) {
      expect(again).not.toHaveProperty(gone)
    }
    await goMissing()
    expect(await read()).toMatchObject({ state: 'missing', missingAttempt: expect.stringMatching(/\.1\/1$/) })
  })

  it('one that was only written by hand, with its host, is open', async () => {
    await record.send('HSET', record.keys.session('s'), 'host', 'a')
    expect(await sessions.close('s', { epoch: 0 })).toMatchObject({ state: 'closed' })
  })
})

describe('opening', () => {
  it('answers the row, lists the session and its host, and keeps the first place in the list', async () => {
    const first = await sessions.open('s', { host: 'new', restartBudget: 2 })
    expect(first).toEqual({
      session: 's',
      host: 'new',
      scope,
      epoch: 1,
      state: 'open',
      crashes: 0,
      restartBudget: 2,
      logId: expect.stringMatching(/^\d+-\d+$/),
    })
    expect(await record.send('SISMEMBER', record.keys.hosts, 'new')).toBe(1)
    const place = await record.send('ZSCORE', record.keys.sessions, 's')
    await sessions.open('s', { host: 'new' })
    expect(await record.send('ZRANGE', record.keys.sessions, 0, -1, 'WITHSCORES')).toEqual(['s', place])
  })

  it('begins a new, higher session epoch each time, closed before or not', async () => {
    const epochs = [(await sessions.open()).epoch]
    epochs.push((await sessions.open()).epoch)
    await sessions.close()
    epochs.push((await sessions.open()).epoch)
    expect(epochs).toEqual([1, 2, 3])
    await record.send('HSET', record.keys.identity, 'generation', 7)
    expect((await sessions.open()).epoch).toBe(7_000_000)
  })

  it('keeps the restart budget that was stated last', async () => {
    await sessions.open('s', { restartBudget: 3 })
    expect(await sessions.open()).toMatchObject({ restartBudget: 3 })
    expect(await sessions.open('s', { restartBudget: 0 })).toMatchObject({ restartBudget: 0 })
  })

  it.each([
    ['SESSION_ELSEWHERE', { host: 'b' }],
    ['SCOPE_MISMATCH', { scope: '/srv/other' }],
    ['SCOPE_MISMATCH', { scope: '/srv/AGENTS' }],
    ['INVALID_ARGUMENT', { parent: 's' }],
    ['INVALID_ARGUMENT', { parent: 'other' }],
    ['INVALID_ARGUMENT', { restartBudget: -1 }],
    ['INVALID_ARGUMENT', { restartBudget: 1.5 }],
    ['INVALID_ARGUMENT', { host: 'A' }],
  ] as const)('is refused %s with %o, whatever its state, and changes nothing', async (code, opening) => {
    await sessions.open()
    await record.refused(code, () => sessions.open('s', opening))
    await record.refused(code, () => sessions.open('s', opening, false))
    await sessions.close()
    await record.refused(code, () => sessions.open('s', opening))
    await sessions.open()
    await goMissing()
    await record.refused(code, () => sessions.open('s', opening))
  })

  it('is refused on a retired host, at first and again', async () => {
    await sessions.open()
    await record.functions.retire('a', 'kim', 'sold')
    await record.refused('HOST_RETIRED', () => sessions.open())
    await record.refused('HOST_RETIRED', () => sessions.open('other'))
    await record.refused('HOST_RETIRED', () => sessions.open('other', {}, false))
  })

  it('takes a parent once, at the first opening; it may be repeated or left out, never changed', async () => {
    await sessions.open('child', { parent: 'p/1' })
    await sessions.open('child', { parent: 'p/1' })
    await sessions.open('child')
    await record.refused('INVALID_ARGUMENT', () => sessions.open('child', { parent: 'p/2' }))
    expect(await sessions.row('child')).toMatchObject({ parent: 'p/1' })
    expect(await record.send('SMEMBERS', record.keys.children('p/1'))).toEqual(['child'])
    expect(await record.send('EXISTS', record.keys.children('p/2'))).toBe(0)
  })

  it('after missing is an operator’s act', async () => {
    await sessions.open()
    await goMissing()
    await record.refused('SESSION_MISSING', () => sessions.open('s', {}, false))
    expect(await sessions.open('s', {}, true)).toMatchObject({ state: 'open', epoch: 2 })
    expect(await sessions.row()).not.toHaveProperty('missing_at')
    expect(await sessions.row()).not.toHaveProperty('missing_attempt')
  })

  it('of one that was closed for good is any owner’s act', async () => {
    await sessions.open()
    await sessions.close('s', { reason: 'disable', terminal: true })
    expect(await sessions.open('s', {}, false)).toMatchObject({ state: 'open', epoch: 2 })
  })

  const bad = [
    '',
    'srv',
    './srv',
    '/srv/',
    '//',
    '/srv//a',
    '/srv/./a',
    '/srv/../a',
    '/a\nb',
    'C:/a',
    '/\ud800',
  ]
  it.each([...bad, `/${'x'.repeat(1024)}`])('is refused for the scope %j', async (text) => {
    expect(isScope(text)).toBe(false)
    await record.refused('INVALID_ARGUMENT', () => sessions.open('s', { scope: text }))
  })

  it.each(['/', '/srv', '/srv/a b', '/srv/...', '/.git', '/é', 'C:\\', 'C:\\a\\b', `/${'x'.repeat(1023)}`])(
    'takes the scope %j as it is',
    async (text) => {
      expect((await sessions.open('s', { scope: text })).scope).toBe(text)
    },
  )
})

describe('closing', () => {
  it('under the epoch of an earlier owner is STALE_EPOCH and changes nothing', async () => {
    const { epoch } = await sessions.open()
    await sessions.open()
    const message = await record.refused('STALE_EPOCH', () => sessions.close('s', { epoch }))
    expect(message).toContain('epoch 2')
    await record.refused('STALE_EPOCH', () => sessions.close('s', { epoch: 3 }))
    await sessions.close()
    await record.refused('STALE_EPOCH', () => sessions.close('s', { epoch }))
    await sessions.join('b')
    await sessions.rehome()
    await record.refused('STALE_EPOCH', () => sessions.close('s', { epoch: 2 }))
  })

  it('that is repeated gets the first answer, whatever it says now, and counts once', async () => {
    await sessions.open('s', { restartBudget: 2 })
    const first = await sessions.close('s', {
      reason: 'crash',
      terminal: undefined,
      abandoned: 3,
      drained: false,
    })
    expect(first).toMatchObject({ state: 'closed', terminal: false, reason: 'crash', crashes: 1 })
    const before = await record.dump()
    const again = { reason: 'crash', terminal: undefined } as const
    expect(await sessions.close('s', again)).toEqual(first)
    expect(await sessions.close('s', { reason: 'removed', terminal: true })).toEqual(first)
    expect(await record.dump()).toEqual(before)
    expect(await sessions.row()).toMatchObject({ abandoned: '3', drained: '0', crashes: '1' })
  })

  it('of a missing one is refused', async () => {
    await sessions.open()
    await goMissing()
    await record.refused('SESSION_MISSING', () => sessions.close())
  })

  it.each([
    { reason: 'drain' as CloseReason, terminal: true },
    { reason: '' as CloseReason, terminal: true },
    { abandoned: -1 },
    { epoch: -1 },
    { epoch: 0.5 },
  ])('is refused with %o', async (closing) => {
    await sessions.open()
    await record.refused('INVALID_ARGUMENT', () => sessions.close('s', closing))
  })
})

describe('the route table', () => {
  const rows = closeReasons.flatMap((reason) =>
    [0, 1, 2, 3].flatMap((budget) =>
      [budget - 1, budget, budget + 1]
        .filter((crashes) => crashes >= 0)
        .map((crashes) => {
          const terminal = terminalOf(reason) ?? crashes >= budget
          const counted = reason === 'crash' && !terminal ? crashes + 1 : crashes
          return { reason, budget, crashes, terminal, counted }
        }),
    ),
  )
  const titled = rows.map((each) => ({
    ...each,
    title: `${each.reason}, budget ${each.budget}, ${each.crashes} crashes before: ${each.terminal ? 'for good' : 'comes back'}`,
  }))

  /** Open, after so many crashes that a budget has paid for. */
  async function crashed(crashes: number, restartBudget: number): Promise<void> {
    await sessions.open('s', { restartBudget: crashes })
    for (let count = 0; count < crashes; count += 1) {
      const closed = await sessions.close('s', { reason: 'crash', terminal: undefined })
      expect(closed).toMatchObject({ crashes: count + 1, terminal: false })
      await sessions.open('s', {}, false)
    }
    await sessions.open('s', { restartBudget }, false)
  }

  it.each(titled)('$title', async ({ reason, budget, crashes, terminal, counted }) => {
    await crashed(crashes, budget)
    const said = terminalOf(reason)
    for (const wrong of [true, false, undefined].filter((each) => each !== said)) {
      await record.refused('INVALID_ARGUMENT', () => sessions.close('s', { reason, terminal: wrong }))
    }
    const closed = await sessions.close('s', { reason, terminal: said })
    expect(closed).toMatchObject({ state: 'closed', reason, terminal, crashes: counted })
    expect(await sessions.row()).toMatchObject({ terminal: terminal ? '1' : '0', crashes: String(counted) })
  })

  it('a budget of n pays for n crashes, and the next one is for good', async () => {
    await sessions.open('s', { restartBudget: 2 })
    const answers: (boolean | undefined)[] = []
    for (let crash = 0; crash < 3; crash += 1) {
      answers.push((await sessions.close('s', { reason: 'crash', terminal: undefined })).terminal)
      if (crash < 2) await sessions.open('s', {}, false)
    }
    expect(answers).toEqual([false, false, true])
  })

  it.each([
    ['an operator', true, 0],
    ['a node', false, 1],
  ])('when %s reopens what was closed for good, the count is right', async (_, operator, count) => {
    await sessions.open('s', { restartBudget: 1 })
    await sessions.close('s', { reason: 'crash', terminal: undefined })
    await sessions.open('s', {}, false)
    expect(await sessions.close('s', { reason: 'crash', terminal: undefined })).toMatchObject({
      terminal: true,
    })
    expect(await sessions.open('s', {}, operator)).toMatchObject({ crashes: count, restartBudget: 1 })
    const next = await sessions.close('s', { reason: 'crash', terminal: undefined })
    expect(next.terminal).toBe(!operator)
  })

  it('an operator that reopens a missing one starts the count over; one that merely reopens does not', async () => {
    await sessions.open('s', { restartBudget: 5 })
    await sessions.close('s', { reason: 'crash', terminal: undefined })
    expect(await sessions.open('s', {}, true)).toMatchObject({ crashes: 1 })
    await goMissing()
    expect(await sessions.open('s', {}, true)).toMatchObject({ crashes: 0, restartBudget: 5 })
  })
})
