import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { isAfter } from '../../src/contract/log-ids.js'
import { expectAccessible, openBrowser, type TestBrowser, type TestPage } from '../support/browser.js'
import { stopNodes } from '../support/nodes.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { makeWorld, type World } from './world.js'

// What keeps the page current, and who may see it.

let redis: TestServer
let world: World
let browser: TestBrowser
const open: TestPage[] = []

beforeAll(async () => {
  redis = await startTestServer()
  world = await makeWorld(redis, 'live')
  browser = await openBrowser()
})
afterEach(async () => {
  for (const { troubles, close } of open.splice(0)) {
    expect(troubles).toEqual([])
    await close()
  }
})
afterAll(async () => {
  await browser?.close()
  await stopNodes()
  await world?.close()
  await redis?.stop()
})

async function visit(path = '', options = {}): Promise<TestPage> {
  const opened = await browser.open(options)
  open.push(opened)
  await opened.page.goto(`${world.server.url}/#/${path}`)
  return opened
}

/** Waits for what the page says of its connection. */
const live = (page: Page, word: string) =>
  page.locator('span.live', { hasText: word }).waitFor({ timeout: 20_000 })

/** As if the page's tab were seen, or another one in front of it. */
const seen = (isHidden: boolean) => `
  Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
  document.dispatchEvent(new Event('visibilitychange'))
`

const messageOf = (delivery: string) => delivery.slice(0, delivery.lastIndexOf('.'))
const idle = (conversation: string) => world.send({ host: 'nowhere' }, conversation)

describe('while the hub works', () => {
  it('shows what changes without being asked', async () => {
    const { page } = await visit('deliveries?host=nowhere')
    await live(page, 'Live')
    const id = await idle('c1')
    await page.getByRole('link', { name: id }).waitFor()
    await world.record.hub.cancel(id, { actor: 'kim', reason: 'no' })
    await page.getByRole('link', { name: id }).waitFor({ state: 'detached' })
  })

  it('says that it is old when the hub goes, and goes on by itself when it is back', async () => {
    const { page } = await visit('log')
    await live(page, 'Live')
    await world.endHub()
    await live(page, 'Not connected')
    await page.getByText('What is shown here is old.').waitFor()
    await expectAccessible(page, 'the page without its hub')
    const id = await idle('c-while-away')
    await world.startHub()
    await live(page, 'Live')
    await page.getByText('What is shown here is old.').waitFor({ state: 'detached' })
    await page
      .getByRole('link', { name: messageOf(id) })
      .first()
      .waitFor()
  })

  it('resumes the stream behind an event that it saw', async () => {
    const { page } = await visit()
    await live(page, 'Live')
    const [before] = (await world.record.hub.logPage({ limit: 1 })).entries
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/v1/events')) asked.push(request.url())
    })
    await idle('c-event')
    await page.waitForResponse((response) => response.url().includes('/v1/overview'))
    await world.restart()
    await live(page, 'Live')
    const position = await until(() =>
      asked.map((url) => new URL(url).searchParams.get('lastEventId')).find(Boolean),
    )
    expect(before).toBeDefined()
    expect(isAfter(before?.id ?? '', position), `${position} is not before ${before?.id}`).toBe(false)
  })

  it('asks for nothing while it is hidden', async () => {
    const { page, context } = await visit('deliveries')
    await live(page, 'Live')
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.evaluate(seen(true))
    await live(page, 'Paused')
    const before = asked.length
    const other = await context.newPage()
    await other.goto(`${world.server.url}/#/log`)
    const id = await idle('c-hidden')
    await other
      .getByRole('link', { name: messageOf(id) })
      .first()
      .waitFor()
    expect(asked.slice(before), 'another page was told meanwhile, this one asked nothing').toEqual([])
    await page.evaluate(seen(false))
    await live(page, 'Live')
    await page.getByRole('link', { name: id }).waitFor()
  })
})

describe('who may look', () => {
  it('asks for a token once a principal exists, keeps it where no script sees it, and forgets it', async () => {
    const { hub } = world.record
    const operator = await hub.addPrincipal({ name: 'kim', role: 'operator' }, 'test')
    const viewer = await hub.addPrincipal({ name: 'lee', role: 'viewer' }, 'test')
    const producer = await hub.addPrincipal({ name: 'shop', role: 'producer' }, 'test')
    const { page, context } = await visit()
    await page.getByLabel('Token').waitFor()
    await expectAccessible(page, 'the door')
    await page.getByLabel('Token').fill('not-a-token')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByRole('alert').getByText('UNAUTHENTICATED').waitFor()
    await page.getByLabel('Token').fill(operator.token ?? '')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByText('kim, operator').waitFor()
    await live(page, 'Live')
    const [cookie] = await context.cookies(`${world.server.url}/v1/me`)
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.reload()
    await page.getByText('kim, operator').waitFor()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.getByLabel('Token').waitFor()

    await page.getByLabel('Token').fill(viewer.token ?? '')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByText('lee, viewer').waitFor()
    const id = await idle('c-viewer')
    await page.goto(`${world.server.url}/#/deliveries/${id}`)
    await page.getByText('Viewers see no payloads').waitFor()
    expect(await page.getByRole('button', { name: 'Cancel' }).count(), 'a viewer acts on nothing').toBe(0)
    await hub.configure({ viewer_payloads: 1 }, 'test')
    await page.reload()
    await page.getByRole('button', { name: 'Show the payload' }).click()
    await page.getByText('"hello"').waitFor()

    await hub.revokePrincipal('lee', { actor: 'test', reason: 'left' })
    await page.getByLabel('Token').waitFor()
    await page.getByLabel('Token').fill(producer.token ?? '')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.getByText('shop, producer').waitFor()
    await page.getByRole('alert').getByText('FORBIDDEN').first().waitFor()
  })
})
