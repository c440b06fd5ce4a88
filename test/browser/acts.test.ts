import { spawnSync } from 'node:child_process'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openBrowser, type TestBrowser, type TestPage } from '../support/browser.js'
import { killChildren } from '../support/child.js'
import { stopNodes } from '../support/nodes.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { makeWorld, scope, stateOf, type World } from './world.js'

// Every act of the page, and what it says when the hub refuses.

let redis: TestServer
let world: World
let browser: TestBrowser
let own: TestPage
let page: Page

beforeAll(async () => {
  redis = await startTestServer()
  world = await makeWorld(redis, 'acts')
  await world.node('build-1')
  await world.node('build-2')
  browser = await openBrowser()
  own = await browser.open()
  page = own.page
  await page.goto(world.server.url)
  await page.getByRole('heading', { level: 1 }).waitFor()
})
afterAll(async () => {
  await browser?.close()
  await killChildren()
  await stopNodes()
  await world?.close()
  await redis?.stop()
})
beforeEach(() => expect(own.troubles).toEqual([]))
// What one test left open would stand before everything after it.
afterEach(async () => {
  if ((await dialog().count()) > 0) await page.keyboard.press('Escape')
})

async function visit(path: string, title: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${path}`)}`)
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
}

const dialog = () => page.getByRole('dialog')
const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })

/** Fills what the open dialog asks for, by label, and sends it. */
async function fill(values: Readonly<Record<string, string>>, verb: string): Promise<void> {
  const name = dialog().getByLabel('Your name')
  await name.fill('kim')
  for (const [label, value] of Object.entries(values)) {
    const field = dialog().getByLabel(new RegExp(`^${label}`))
    const kind = await field.evaluate((element: { readonly tagName: string }) => element.tagName)
    if (kind === 'SELECT') await field.selectOption(value)
    else await field.fill(value)
  }
  await dialog().getByRole('button', { name: verb, exact: true }).click()
}

async function said(text: string | RegExp): Promise<void> {
  await page.locator('.done').getByText(text).first().waitFor()
  await dialog().waitFor({ state: 'detached' })
}

/** The dialog stays, and says what was refused. */
async function refused(code: string): Promise<void> {
  await dialog().getByRole('alert').getByText(code).waitFor()
  await dialog().getByRole('button', { name: 'Go back' }).click()
  await dialog().waitFor({ state: 'detached' })
}

/** Idle: its host has no node. */
const idle = (conversation = 'c') => world.send({ host: 'nowhere' }, conversation)
const held = async (conversation = 'c') => {
  const id = await idle(conversation)
  await world.record.hub.holdDelivery(id, { actor: 'kim', reason: 'look first' })
  return id
}
const fields = (id: string) => world.record.fields(id)

describe('acts on a delivery', () => {
  it('releases one that is held, with reason and actor in the record', async () => {
    const id = await held()
    await visit(`deliveries/${id}`, `Delivery ${id}`)
    await button('Release').click()
    await fill({ Reason: 'looked at it' }, 'Release')
    await said(`${id} is queued`)
    expect(await fields(id)).toMatchObject({ state: 'queued', requeued_by: 'kim' })
    await page.getByText('looked at it').waitFor()
  })

  it('rejects one that is held', async () => {
    const id = await held()
    await visit('held', 'Held')
    await button(`Reject ${id}`).click()
    await fill({ Reason: 'not wanted' }, 'Reject')
    await said(`${id} is failed`)
    expect(await fields(id)).toMatchObject({ state: 'failed', failed_by: 'kim' })
  })

  it('holds and cancels one that is idle', async () => {
    const id = await idle()
    await visit(`deliveries/${id}`, `Delivery ${id}`)
    await button('Hold').click()
    await fill({ Reason: 'wait' }, 'Hold')
    await said(`${id} is held`)
    await button('Cancel').click()
    await fill({ Reason: 'no' }, 'Cancel')
    await page.locator('.done').getByText(`${id} is failed`).waitFor()
  })

  it('says why an act is refused, and keeps what was written', async () => {
    const id = await held()
    await visit('held', 'Held')
    await button(`Release ${id}`).click()
    await world.record.hub.reject(id, { actor: 'lee', reason: 'was quicker' })
    await fill({ Reason: 'too late' }, 'Release')
    await dialog().getByRole('alert').getByText('NOT_HELD').waitFor()
    expect(await dialog().getByLabel('Reason').inputValue()).toBe('too late')
    await refused('NOT_HELD')
    expect(await fields(id)).toMatchObject({ state: 'failed', failed_by: 'lee' })
  })

  it('asks for the reason before anything is sent', async () => {
    const id = await held()
    await visit(`deliveries/${id}`, `Delivery ${id}`)
    await button('Release').click()
    await fill({}, 'Release')
    const isMissing = await dialog()
      .getByLabel('Reason')
      .evaluate(
        (field: { readonly validity?: { readonly valueMissing: boolean } }) => field.validity?.valueMissing,
      )
    expect(isMissing).toBe(true)
    expect((await fields(id))['state']).toBe('held')
    await page.keyboard.press('Escape')
    await dialog().waitFor({ state: 'detached' })
  })
})

describe('the same in a terminal', () => {
  it('is a line that can be run: with redis-cli, and with holdfast', async () => {
    const id = await idle('c-lines')
    await visit(`deliveries/${id}`, `Delivery ${id}`)
    const line = async (name: string) => String(await button(name).getAttribute('title'))
    const run = (text: string) => spawnSync('sh', ['-c', text], { encoding: 'utf8' }).stdout
    const here = (text: string) => text.replace('redis-cli', `redis-cli -p ${redis.port}`)
    expect(run(here(await line('Copy: redis-cli row')))).toContain('c-lines')
    expect(run(here(await line('redis-cli why')))).toContain('stranded')
    const program = `${process.execPath} dist/cli/main.js --redis ${redis.url}`
    const shown = (await line('holdfast show')).replace('holdfast', program)
    expect(run(shown)).toContain('c-lines')
  })
})

describe('unknown outcomes', () => {
  it('resolves an attempt with evidence, after the hub refused it while its executor runs', async () => {
    let finish: () => void = () => undefined
    const gate = new Promise<void>((resolve) => {
      finish = resolve
    })
    await world.node('slow', async () => {
      await gate
      throw new Error('no answer from the target')
    })
    const id = await world.send({ host: 'slow' }, 'c-unknown')
    await until(async () => (await world.record.hub.delivery(id)).attempts.length === 1)
    await visit(`deliveries/${id}`, `Delivery ${id}`)
    await button('Resolve').click()
    await fill({ It: 'result', Evidence: 'the ledger has it' }, 'Resolve')
    await refused('EXECUTING')
    finish()
    await until(async () => (await world.record.hub.unknown()).some((each) => each.id === `${id}/1`))
    await visit('unknown', 'Unknown')
    await button(`Resolve ${id}/1`).click()
    await fill({ It: 'result', Evidence: 'the ledger has it, entry 17' }, 'Resolve')
    await said(`${id}/1 is resolved as result`)
    const [attempt] = (await world.record.hub.delivery(id)).attempts
    expect(attempt).toMatchObject({
      status: 'done',
      resolvedBy: 'kim',
      evidence: 'the ledger has it, entry 17',
    })
  })

  it('resolves an effect', async () => {
    const { hub } = world.record
    const claim = { type: 'charge', payloadHash: 'b'.repeat(64), executor: 'billing-1', grant: 'g1' }
    const { epoch } = (await hub.claimEffect('charge/1', claim)) as { epoch: number }
    const outcome = { kind: 'outcome_unknown', errorCode: 'timeout' } as const
    await hub.settleEffect('charge/1', { executor: 'billing-1', grant: 'g1', epoch, outcome })
    await visit('effects/charge%2F1', 'Effect charge/1')
    await button('Resolve').click()
    await fill({ It: 'terminal', Evidence: 'the bank says it never arrived' }, 'Resolve')
    await said('charge/1 is resolved as terminal')
    expect(await hub.effect('charge/1')).toMatchObject({ status: 'terminal', resolvedBy: 'kim' })
  })
})

describe('fences', () => {
  it('sets one, shows who and why, and lifts it', async () => {
    await visit('fences', 'Fences')
    await button('New fence').click()
    await fill({ Kind: 'hold', Scope: 'conversation:c-fence', Reason: 'audit' }, 'Set')
    await said('hold conversation:c-fence stands')
    expect(await world.record.hub.fences()).toMatchObject([
      { fence: 'hold:conversation:c-fence', reason: 'audit', actor: 'kim' },
    ])
    await button('Lift hold:conversation:c-fence').click()
    await fill({}, 'Lift')
    await said('hold:conversation:c-fence is lifted')
    expect(await world.record.hub.fences()).toEqual([])
  })

  it('says what is no scope', async () => {
    await visit('fences', 'Fences')
    await button('New fence').click()
    await fill({ Kind: 'pause', Scope: 'everything', Reason: 'x' }, 'Set')
    await refused('INVALID_ARGUMENT')
  })
})

describe('hosts', () => {
  it('drains one, ends the drain, and retires another', async () => {
    await visit('hosts/build-2', 'Host build-2')
    await button('Drain build-2').click()
    await fill({}, 'Drain')
    await said('build-2 drains')
    await page.locator('.head .badge', { hasText: 'drains' }).waitFor()
    await button('Lift the pause build-2').click()
    await fill({}, 'Lift')
    await said('pause:host:build-2 is lifted')
    const id = await world.send({ host: 'old-1' }, 'c-old')
    await visit('hosts', 'Hosts')
    await button('Retire old-1').click()
    await fill({ Reason: 'sold' }, 'Retire')
    await said('old-1 is retired')
    expect(await fields(id)).toMatchObject({ state: 'held', held_reason: 'retired' })
  })
})

describe('sessions', () => {
  it('rehomes one, and says why it cannot; then closes it', async () => {
    const { hub } = world.record
    await hub.openSession('agent-1', { host: 'build-1', scope }, 'kim')
    await visit('sessions/agent-1', 'Session agent-1')
    await button('Rehome agent-1').click()
    await fill({ 'New host': 'nowhere', Reason: 'move' }, 'Rehome')
    await refused('HOST_NOT_LIVE')
    await button('Rehome agent-1').click()
    await fill({ 'New host': 'build-2', Reason: 'move' }, 'Rehome')
    await said('agent-1 lives on build-2')
    expect(await hub.session('agent-1')).toMatchObject({ host: 'build-2', rehomedFrom: 'build-1' })
    await page.getByRole('link', { name: 'build-2' }).first().waitFor()
    await button('Close agent-1').click()
    await fill({ 'Because of': 'removed' }, 'Close')
    await said('agent-1 is closed')
    expect(await hub.session('agent-1')).toMatchObject({ state: 'closed', terminal: true, closedBy: 'kim' })
  })
})

describe('messages', () => {
  it('sends one again, to somebody else', async () => {
    const id = await idle('c-again')
    const message = id.slice(0, id.lastIndexOf('.'))
    await visit(`messages/${message}`, `Message ${message}`)
    await button('Send again').click()
    await fill({ Recipients: 'host:build-1' }, 'Send')
    await said(/accepted as/)
    await button('Send again').click()
    await fill({ Recipients: 'build-1' }, 'Send')
    await refused('INVALID_ARGUMENT')
  })

  it('shows a payload as JSON, text and bytes, digit by digit', async () => {
    const { deliveries, id } = await world.record.hub.accept({
      key: 'digits',
      conversation: 'c-digits',
      sender: 'billing',
      to: [{ host: 'nowhere' }],
      payload: Buffer.from('{"big":130775545883395173,"list":[]}'),
      contentType: 'application/json',
    })
    await visit(`deliveries/${deliveries[0]?.id}`, `Delivery ${deliveries[0]?.id}`)
    await button('Show the payload').click()
    const shown = page.locator('.payload pre')
    await shown.waitFor()
    expect(await shown.textContent()).toBe('{\n  "big": 130775545883395173,\n  "list": []\n}')
    await page.getByLabel('text', { exact: true }).check()
    expect(await shown.textContent()).toBe('{"big":130775545883395173,"list":[]}')
    await page.getByLabel('hex', { exact: true }).check()
    expect(await shown.textContent()).toContain('00000000  7b 22 62 69 67 22 3a 31')
    await visit(`messages/${id}`, `Message ${id}`)
  })
})

describe('sweeps, the audit and settings', () => {
  it('runs a sweep and the audit', async () => {
    await visit('sweeps', 'Sweeps')
    await button('Run retention').click()
    await fill({}, 'Run')
    await said(/retention: found \d+, repaired \d+, left \d+/)
    await visit('audit', 'Audit')
    await button('Run the audit').click()
    await page.getByText('Nothing is lost.').waitFor()
    await page.getByText('None: rows, lists and counts agree.').waitFor()
  })

  it('sets a tunable for everybody, and says what is none', async () => {
    await visit('settings', 'Settings')
    await button('Set report_deadline_ms').click()
    await fill({ Value: '7' }, 'Set')
    await refused('INVALID_ARGUMENT')
    await button('Set report_deadline_ms').click()
    await fill({ Value: '800000' }, 'Set')
    await said('report_deadline_ms is 800000')
    expect(await world.record.send('HGET', world.record.keys.config, 'report_deadline_ms')).toBe('800000')
  })
})

describe('acts on several', () => {
  it('on those that are marked: what is refused is named', async () => {
    const ids = [await held('c-marked'), await held('c-marked'), await held('c-marked')]
    await visit('held', 'Held')
    for (const id of ids) await page.getByLabel(`Mark ${id}`).check()
    await world.record.hub.reject(ids[1] ?? '', { actor: 'lee', reason: 'was quicker' })
    await button('Release').first().click()
    await dialog().getByLabel('Yes, release 3').check()
    await fill({ Reason: 'all of these' }, 'Release')
    await dialog().getByText('2 done, 1 refused.').waitFor()
    await dialog().getByText('NOT_HELD').waitFor()
    await dialog().getByRole('button', { name: 'Close' }).click()
    expect(await world.record.states(ids)).toEqual(['queued', 'failed', 'queued'])
  })

  it('on all that match: counted first, changed only when confirmed', async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, () => idle('c-bulk')))
    const other = await idle('c-other')
    await visit('deliveries?state=queued&conversation=c-bulk', 'Deliveries')
    await button('Cancel all …').click()
    await dialog().getByRole('button', { name: 'Count' }).click()
    await dialog().getByText('30 deliveries').waitFor()
    expect(new Set(await world.record.states(ids))).toEqual(new Set(['queued']))
    await dialog().getByLabel('Yes, cancel 30').check()
    await fill({ Reason: 'the import was wrong' }, 'Cancel')
    await dialog().getByText('30 done, 0 refused.').waitFor()
    await dialog().getByRole('button', { name: 'Close' }).click()
    expect(new Set(await world.record.states(ids))).toEqual(new Set(['failed']))
    expect((await fields(ids[0] ?? '')) as object).toMatchObject({ failed_by: 'kim' })
    expect(await world.record.states([other])).toEqual(['queued'])
  })
})

describe('finding', () => {
  it('goes to what is named by an id, a key or a name', async () => {
    const id = await idle('c-find')
    const find = page.getByLabel('Find an id, key, host, session or conversation')
    const places = [
      [id, `Delivery ${id}`],
      [id.slice(0, id.lastIndexOf('.')), `Message ${id.slice(0, id.lastIndexOf('.'))}`],
      ['digits', /^Message /],
      ['build-1', 'Host build-1'],
      ['agent-1', 'Session agent-1'],
      ['charge/1', 'Effect charge/1'],
      ['c-find', 'Messages'],
    ] as const
    for (const [text, title] of places) {
      await find.fill(text)
      await find.press('Enter')
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
    }
  })

  it('goes by keys, and helps', async () => {
    await page.locator('main').focus()
    await page.keyboard.press('g')
    await page.keyboard.press('f')
    await page.getByRole('heading', { level: 1, name: 'Fences' }).waitFor()
    await page.keyboard.press('?')
    await dialog().getByText('find something by its id').waitFor()
    await page.keyboard.press('Escape')
    await dialog().waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    expect(await page.evaluate('document.activeElement?.id')).toBe('find')
    await stateOf(world, await world.send({ host: 'build-1' }, 'c-last'), 'delivered')
  })
})
