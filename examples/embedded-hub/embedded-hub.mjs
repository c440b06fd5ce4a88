// @ts-check
// The shop of app.mjs with the hub in it, for an afternoon: an order is shipped, an admin holds the warehouse, a member of
// the staff sees what waits and may not touch it, the admin releases it.
// node examples/embedded-hub/embedded-hub.mjs   (in a clone after npm run build)
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { initRecord, startEmbedded } from 'holdfast'
import { openClient } from 'holdfast/client'
import { createNode } from 'holdfast/node'
import { createShop } from './app.mjs'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-shop-'))
/** What is to be ended, the last first. @type {(() => unknown)[]} */
const closers = [() => rmSync(folder, { recursive: true, force: true })]

try {
  process.exitCode = await story()
} finally {
  for (const close of closers.reverse()) await close()
}

async function story() {
  const server = await startEmbedded({ dataDir: folder })
  const redis = server.url
  closers.push(() => server.stop())
  await initRecord({ redis })

  /** @type {import('./app.mjs').User[]} */
  const users = [
    { name: 'kim', kind: 'admin', password: randomUUID() },
    { name: 'vera', kind: 'staff', password: randomUUID() },
    { name: 'carl', kind: 'customer', password: randomUUID() },
    { name: 'monitor', kind: 'staff', password: randomUUID(), apiKey: randomUUID() },
  ]
  const app = await createShop({ redis, users })
  closers.push(() => app.close())
  const url = await app.listen({ host: '127.0.0.1', port: 0 })

  /** @type {string[]} */
  const shipped = []
  const warehouse = createNode({
    host: 'warehouse',
    redis,
    mirror: join(folder, 'warehouse.db'),
    execute: ({ payload }) => {
      const { order, item } = JSON.parse(Buffer.from(payload).toString('utf8'))
      shipped.push(order)
      return { shipped: item }
    },
  })
  await warehouse.start()
  closers.push(() => warehouse.stop())

  /** As the browser of a user. @param {string} name */
  async function browser(name) {
    const password = users.find((user) => user.name === name)?.password
    const login = await post(`${url}/login`, { name, password })
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
    return {
      /** @param {string} path */
      get: (path) => fetch(`${url}${path}`, { headers: { cookie }, redirect: 'manual' }),
      /** As a script of the page does: that header is what no other page can send. @param {string} path @param {object} body */
      act: (path, body, method = 'POST') =>
        post(`${url}${path}`, body, { cookie, 'holdfast-page': '1' }, method),
      /** @param {string} path @param {object} body */
      post: (path, body) => post(`${url}${path}`, body, { cookie }),
    }
  }

  const [kim, vera, carl] = await Promise.all([browser('kim'), browser('vera'), browser('carl')])
  await carl.post('/orders', { order: '1', item: 'kettle' })
  await until('order 1 being shipped', () => shipped.includes('1'))
  console.log('carl orders: shipped', shipped.join(', '))

  console.log('the page, for nobody:', (await fetch(`${url}/ops/`)).status)
  const page = await kim.get('/ops/')
  console.log('the page, for kim:', page.status, /<title>(.*)<\/title>/.exec(await page.text())?.[1])
  for (const [name, { get }] of Object.entries({ kim, vera, carl })) {
    const me = await get('/ops/v1/me')
    const { role, code } = /** @type {Record<string, string>} */ (await me.json())
    console.log(`${name} there: ${me.status} ${role ?? code}`)
  }

  const hold = { reason: 'stocktaking' }
  const fence = `/ops/v1/fences/hold/${encodeURIComponent('host:warehouse')}`
  const veraHolds = await verdict(await vera.act(fence, hold, 'PUT'))
  console.log('vera holds the warehouse:', veraHolds)
  console.log('kim holds the warehouse:', await verdict(await kim.act(fence, hold, 'PUT')))

  await carl.post('/orders', { order: '2', item: 'teapot' })
  const waiting = await until('order 2 being held', async () => {
    const { held } = /** @type {{held: import('holdfast').HeldEntry[]}} */ (
      await (await vera.get('/ops/v1/held')).json()
    )
    return held[0]
  })
  console.log(`vera sees: ${waiting.conversation} is held, ${waiting.reason}; shipped ${shipped.join(', ')}`)
  const release = `/ops/v1/deliveries/${encodeURIComponent(waiting.id)}/release`
  const veraReleases = await verdict(await vera.act(release, { reason: 'looks fine' }))
  console.log('vera releases it:', veraReleases)
  console.log(
    'kim releases it:',
    await verdict(await kim.act(release, { reason: 'the teapots are counted' })),
  )
  await until('order 2 being shipped', () => shipped.includes('2'))

  // A program takes the same address, with a key of the shop's own.
  const apiKey = users.find(({ name }) => name === 'monitor')?.apiKey
  const client = openClient({ url: `${url}/ops`, token: apiKey })
  closers.push(() => client.close())
  const { deliveries } = await client.waitFor(waiting.id.replace(/\.\d+$/, ''), 30_000)
  console.log('what the record keeps of it:')
  for (const { what, actor, reason } of deliveries[0]?.timeline ?? []) {
    if (reason !== undefined) console.log(`  ${what} by ${actor}: ${reason}`)
  }
  console.log(`shipped ${shipped.join(', ')}`)
  const isRefused = [veraHolds, veraReleases].every((each) => each === '403 FORBIDDEN')
  return isRefused && shipped.join() === '1,2' ? 0 : 1
}

/** @param {string} url @param {object} body @param {Record<string, string>} headers */
async function post(url, body, headers = {}, method = 'POST') {
  const type = { 'content-type': 'application/json' }
  return await fetch(url, { method, headers: { ...type, ...headers }, body: JSON.stringify(body) })
}

/** @param {Response} reply */
async function verdict(reply) {
  const { code = 'done' } = /** @type {{code?: string}} */ (await reply.json())
  return `${reply.status} ${code}`
}

/**
 * @template T @param {string} what @param {() => T | undefined | false | Promise<T | undefined | false>} check
 * @returns {Promise<T>}
 */
async function until(what, check) {
  const deadline = performance.now() + 30_000
  while (performance.now() < deadline) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    await sleep(20)
  }
  throw new Error(`${what} did not come within 30 s`)
}
