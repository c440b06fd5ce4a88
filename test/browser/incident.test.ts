import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { keepPicture, openBrowser, type TestBrowser, type TestPage } from '../support/browser.js'
import { killChildren } from '../support/child.js'
import { freshPath, stopNodes } from '../support/nodes.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { makePoison, makeWorld, scope, stateOf, type World } from './world.js'

// Four things went wrong at once. Whoever opens the page finds them, and mends them, there alone.
// With HOLDFAST_SCREENSHOTS=<folder> each step is kept as a picture: those of docs/dashboard.md are made so.

let redis: TestServer
let world: World
let browser: TestBrowser
let own: TestPage
let page: Page
const ids = { paused: '', poison: '', unknown: '', stranded: '' }

beforeAll(async () => {
  redis = await startTestServer()
  world = await makeWorld(redis, 'hf-incident')
  const { hub } = world.record
  const mirror = freshPath('db')
  ids.poison = await makePoison(world, 'build-2', mirror)
  await world.node('build-1')
  await world.node('build-2', undefined, mirror)
  for (const at of [1, 2, 3, 4, 5]) await world.send({ host: `build-${1 + (at % 2)}` }, `order-${at}`)
  await hub.pause('conversation:order-17', { reason: 'customer called, wait for her', actor: 'lee' })
  ids.paused = await world.send({ host: 'build-1' }, 'order-17')
  ids.unknown = await world.send({ host: 'build-1' }, 'order-18', { wish: 'throw', amount: '12.50' })
  await hub.openSession('agent-9', { host: 'build-9', scope }, 'lee')
  const dead = world.child('build-9', { node: 'n9' })
  await until(async () => (await hub.host('build-9'))?.nodes.some(({ state }) => state === 'live'))
  await dead.kill()
  ids.stranded = await world.send({ session: 'agent-9' }, 'order-19')
  await stateOf(world, ids.poison, 'held')
  await until(async () => (await hub.unknown()).length === 1, { timeoutMs: 20_000 })
  await until(async () => (await hub.overview()).strandedHosts > 0, { timeoutMs: 20_000 })
  browser = await openBrowser()
  own = await browser.open()
  page = own.page
  await page.goto(world.server.url)
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.evaluate(`
    addEventListener('click', () => {
      document.body.dataset.clicks = Number(document.body.dataset.clicks ?? 0) + 1
    })
  `)
})
afterAll(async () => {
  await browser?.close()
  await killChildren()
  await stopNodes()
  await world?.close()
  await redis?.stop()
})

/** Clicks since the last time it was asked: what an operator's hand did. */
async function clicks(): Promise<number> {
  const count = await page.evaluate('Number(document.body.dataset.clicks ?? 0)')
  await page.evaluate('document.body.dataset.clicks = 0')
  return Number(count)
}

const dialog = () => page.getByRole('dialog')
const overviewLink = () => page.getByRole('link', { name: 'Overview' }).click()

async function decide(values: Readonly<Record<string, string>>, verb: string): Promise<void> {
  const actor = dialog().getByLabel('Your name')
  if ((await actor.inputValue()) === '') await actor.fill('kim')
  for (const [label, value] of Object.entries(values)) await dialog().getByLabel(label).fill(value)
  await dialog().getByRole('button', { name: verb, exact: true }).click()
  await dialog().waitFor({ state: 'detached' })
}

const finished = (id: string) =>
  until(async () => (await world.record.hub.delivery(id)).attempts.at(-1)?.status === 'done', {
    timeoutMs: 20_000,
    what: `${id} done`,
  })

describe('an incident, by the page alone', () => {
  it('is seen at a glance: what waits, how much of it, and since when', async () => {
    for (const text of [
      '1 delivery is held: release or reject',
      '1 outcome is unknown: find out, and resolve',
      '1 host has work and no live node',
      '1 fence stands',
    ]) {
      await page.getByRole('link', { name: text }).waitFor()
    }
    await page.locator('.u-legend').first().waitFor()
    await keepPicture(page, 'incident-1-overview')
    await clicks()
  })

  it('a paused conversation: who paused it and why; it is lifted, and runs', async () => {
    await page.getByRole('link', { name: '1 fence stands' }).click()
    await page.getByText('customer called, wait for her').waitFor()
    await page.getByRole('button', { name: 'Lift pause:conversation:order-17' }).click()
    await dialog().waitFor()
    await dialog().getByLabel('Your name').fill('kim')
    await keepPicture(page, 'incident-2-paused')
    await decide({}, 'Lift')
    await finished(ids.paused)
    expect(await clicks()).toBeLessThanOrEqual(4)
  })

  it('a poison payload: how often it took its node down; the node is mended, it is released, and runs', async () => {
    await overviewLink()
    await page.getByRole('link', { name: '1 delivery is held: release or reject' }).click()
    await page.getByText('its owner crashed too often').waitFor()
    await page.getByRole('link', { name: ids.poison }).click()
    await page.getByRole('heading', { level: 1, name: `Delivery ${ids.poison}` }).waitFor()
    await page.getByText('No attempt was begun: nothing ran.').waitFor()
    await keepPicture(page, 'incident-3-poison')
    await page.getByRole('button', { name: 'Release', exact: true }).click()
    await decide({ Reason: 'the reader of week files is mended' }, 'Release')
    await finished(ids.poison)
    expect(await clicks()).toBeLessThanOrEqual(6)
  })

  it('an unknown outcome: looked up at its target, and resolved with evidence', async () => {
    await overviewLink()
    await page.getByRole('link', { name: '1 outcome is unknown: find out, and resolve' }).click()
    await page.getByRole('button', { name: `Resolve ${ids.unknown}/1` }).click()
    await dialog().getByLabel('Evidence').fill('the bank has booking 4711 for it')
    await keepPicture(page, 'incident-4-unknown')
    await decide({}, 'Resolve')
    const [attempt] = (await world.record.hub.delivery(ids.unknown)).attempts
    expect(attempt).toMatchObject({ status: 'done', resolvedBy: 'kim' })
    expect(await clicks()).toBeLessThanOrEqual(5)
  })

  it('a dead host: its session goes on at another, and the host is retired', async () => {
    await overviewLink()
    await page.getByRole('link', { name: '1 host has work and no live node' }).click()
    await page.getByRole('link', { name: 'build-9' }).click()
    await page.getByRole('heading', { level: 1, name: 'Host build-9' }).waitFor()
    await page.getByRole('link', { name: 'agent-9' }).waitFor()
    await keepPicture(page, 'incident-5-dead-host')
    await page.getByRole('link', { name: 'agent-9' }).click()
    await page.getByRole('button', { name: 'Rehome agent-9' }).click()
    await decide({ 'New host': 'build-1', Reason: 'build-9 lost its disk' }, 'Rehome')
    await finished(ids.stranded)
    await page.goBack()
    await page.getByRole('button', { name: 'Retire build-9' }).click()
    await decide({ Reason: 'lost its disk' }, 'Retire')
    await page.locator('.head .badge', { hasText: 'retired' }).waitFor()
    expect(await clicks()).toBeLessThanOrEqual(9)
  })

  it('is over: nothing waits for anybody', async () => {
    await overviewLink()
    await page.getByText('✓ Nothing.').waitFor({ timeout: 20_000 })
    await keepPicture(page, 'incident-6-over')
    expect(own.troubles).toEqual([])
    const { disagreements } = await world.record.hub.audit()
    expect(disagreements).toEqual([])
  })
})
