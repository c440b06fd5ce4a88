import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  expectAccessible,
  keepPicture,
  openBrowser,
  type TestBrowser,
  type TestPage,
} from '../support/browser.js'
import { killChildren } from '../support/child.js'
import { freshPath, stopNodes } from '../support/nodes.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { makePoison, makeWorld, scope, stateOf, type World } from './world.js'

// Each screen on a hub at work: what it shows, for everybody, in light and dark, and on a phone.

let redis: TestServer
let world: World
let browser: TestBrowser
let wide: TestPage
let phone: TestPage
/** Deliveries by how they went. */
const ids: Record<'done' | 'terminal' | 'unknown' | 'poison' | 'queued' | 'parked', string> = {
  done: '',
  terminal: '',
  unknown: '',
  poison: '',
  queued: '',
  parked: '',
}

beforeAll(async () => {
  redis = await startTestServer()
  world = await makeWorld(redis, 'screens')
  const mirror = freshPath('db')
  ids.poison = await makePoison(world, 'build-2', mirror)
  await world.node('build-1')
  await world.node('build-2', undefined, mirror)
  const { hub } = world.record
  await hub.openSession('agent-7', { host: 'build-1', scope }, 'kim')
  await hub.pause('conversation:c-paused', { reason: 'customer asked', actor: 'kim' })
  ids.done = await world.send({ session: 'agent-7' }, 'c1')
  ids.terminal = await world.send({ host: 'build-1' }, 'c2', { wish: 'terminal' })
  ids.unknown = await world.send({ host: 'build-1' }, 'c3', { wish: 'throw' })
  ids.queued = await world.send({ host: 'never-joined' }, 'c4')
  ids.parked = await world.send({ host: 'build-1' }, 'c-paused')
  await hub.claimEffect('charge/order-17', {
    type: 'charge',
    payloadHash: 'a'.repeat(64),
    executor: 'billing-1',
    grant: 'g1',
  })
  // What a hand did to the pending list: the row and the list disagree.
  const byHand = await world.record.join('build-3', 'n3')
  await world.send({ host: 'build-3' }, 'c5')
  await world.send({ host: 'build-3' }, 'c6')
  await world.record.claim(byHand, 10)
  const stream = world.record.keys.stream('build-3')
  const [[entry = '']] = (await world.record.send('XPENDING', stream, 'nodes', '-', '+', 1)) as [[string]]
  await world.record.send('XCLAIM', stream, 'nodes', 'somebody', 0, entry)
  await stateOf(world, ids.poison, 'held')
  await until(async () => (await hub.unknown()).length === 1, { timeoutMs: 20_000 })
  await until(async () => (await hub.delivery(ids.done)).settledAt !== undefined)
  browser = await openBrowser()
  wide = await browser.open()
  phone = await browser.open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
  for (const { page } of [wide, phone]) {
    await page.goto(`${world.server.url}/`)
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  }
})
afterAll(async () => {
  await browser?.close()
  await killChildren()
  await stopNodes()
  await world?.close()
  await redis?.stop()
})

async function visit({ page }: TestPage, path: string, title: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${path}`)}`)
  await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
}

/** A screen, its title, and words that it must show of this hub. */
const screens = [
  [
    '',
    'Overview',
    () =>
      ['What waits for someone', '1 delivery is held: release or reject', 'durability', 'customers'].slice(
        0,
        3,
      ),
  ],
  ['deliveries', 'Deliveries', () => [ids.queued, ids.poison, 'parked']],
  ['deliveries?state=held', 'Deliveries', () => [ids.poison, 'Release all …']],
  ['deliveries?host=never-joined', 'Deliveries', () => [ids.queued]],
  ['deliveries?conversation=c-paused', 'Deliveries', () => [ids.parked]],
  [
    () => `deliveries/${ids.unknown}`,
    () => `Delivery ${ids.unknown}`,
    () => ['connection reset', 'epoch 1', 'Resolve'],
  ],
  [
    () => `deliveries/${ids.done}`,
    () => `Delivery ${ids.done}`,
    () => ['done', 'attempt 1 begun on build-1/n1', '"balance":"12.50"'],
  ],
  [
    () => `deliveries/${ids.queued}`,
    () => `Delivery ${ids.queued}`,
    () => ['no node of host never-joined ever joined'],
  ],
  ['messages', 'Messages', () => ['screens-1', 'billing', '1 of 1']],
  [
    () => `messages/${messageOf(ids.done)}`,
    () => `Message ${messageOf(ids.done)}`,
    () => ['Send again', ids.done],
  ],
  ['held', 'Held', () => [ids.poison, 'poison', 'its owner crashed too often']],
  ['unknown', 'Unknown', () => [`${ids.unknown}/1`, 'build-1']],
  ['fences', 'Fences', () => ['conversation:c-paused', 'customer asked', 'kim']],
  ['hosts', 'Hosts', () => ['build-1', 'never-joined', 'never joined, has work']],
  ['hosts?only=stranded', 'Hosts', () => ['never-joined']],
  ['hosts/build-1', 'Host build-1', () => ['Pending list', 'n1']],
  [
    'hosts/build-3',
    'Host build-3',
    () => ['somebody', 'the row names n3', 'agree', '1 of this page disagree'],
  ],
  ['sessions', 'Sessions', () => ['agent-7', scope]],
  ['sessions/agent-7', 'Session agent-7', () => ['Rehome', scope]],
  ['effects', 'Effects', () => ['charge/order-17', 'billing-1']],
  ['effects/charge%2Forder-17', 'Effect charge/order-17', () => ['billing-1', 'executing']],
  ['sweeps', 'Sweeps', () => ['fan-out', 'Run']],
  ['audit', 'Audit', () => ['Run the audit']],
  ['log', 'Log', () => ['Stand still']],
  ['log?verb=claim', 'Log', () => ['queued → claimed']],
  ['log?verb=accept', 'Log', () => [messageOf(ids.done)]],
  ['log?verb=pause', 'Log', () => ['customer asked']],
  ['settings', 'Settings', () => ['stale_after_ms', '1,500']],
] as const

/** Screens as they are kept: one of a kind. */
const nameOf = (path: string, title: string) => {
  const [kind = ''] = title.toLowerCase().split(' ')
  return path.includes('?') ? '' : `screen-${kind}`
}
const messageOf = (delivery: string) => delivery.slice(0, delivery.lastIndexOf('.'))
const said = (text: string | (() => string)) => (typeof text === 'string' ? text : text())

describe.each(screens)('the screen %s', (path, title, shows) => {
  it('shows what is there, keeps nobody out, and fits a phone', async () => {
    await visit(wide, said(path), said(title))
    for (const words of shows()) await wide.page.getByText(words).first().waitFor()
    for (const theme of ['dark', 'light']) {
      await wide.page.getByLabel('Theme').selectOption(theme)
      await expectAccessible(wide.page, `${said(path)} in ${theme}`, theme === 'dark' ? 'all' : 'colours')
      if (theme === 'light' || said(path) === '')
        await keepPicture(wide.page, `${nameOf(said(path), said(title))}-${theme}`)
    }
    await visit(phone, said(path), said(title))
    for (const words of shows()) await phone.page.getByText(words).first().waitFor()
    const scrollWidth = await phone.page.evaluate('document.documentElement.scrollWidth')
    const clientWidth = await phone.page.evaluate('document.documentElement.clientWidth')
    if (['', 'held'].includes(said(path)))
      await keepPicture(phone.page, `${nameOf(said(path), said(title))}-phone`)
    expect(Number(scrollWidth), 'nothing is cut off at the side').toBeLessThanOrEqual(Number(clientWidth))
    expect([...wide.troubles, ...phone.troubles]).toEqual([])
  })
})
