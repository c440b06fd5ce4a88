import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Setting, settings } from '../../src/contract/settings.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

let server: TestServer
let record: OpenRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await openRecord(server)
})
afterAll(async () => {
  await record?.close()
  await server?.stop()
})

it('are the same in Lua and TypeScript: names, defaults, least and most values', () => {
  const text = readFileSync(new URL('../../lua/lib/config.lua', import.meta.url), 'utf8')
  const rows = [...text.matchAll(/^ {2}(\w+) = \{ default = (\d+), least = (\d+)(?:, most = (\d+))? \},$/gm)]
  const inLua = Object.fromEntries(
    rows.map(([, name, value, least, most]) => [
      name,
      { default: Number(value), least: Number(least), most: most === undefined ? undefined : Number(most) },
    ]),
  )
  const inSource = Object.fromEntries(
    Object.entries<Setting>(settings).map(([name, { default: value, least, most }]) => [
      name,
      { default: value, least, most },
    ]),
  )
  expect(inLua).toEqual(inSource)
})

it('are read at every call: the least value counts, a worse one gives the default', async () => {
  const who = await record.join('a', 'n1')
  const beat = () =>
    record.functions.heartbeat(who, {
      lastLogId: '0-0',
      progressAgeMs: 0,
      blocking: { sumMs: 0, longestMs: 0 },
    })
  expect(await beat()).toMatchObject({ staleAfterMs: settings.stale_after_ms.default })
  await record.config('stale_after_ms', settings.stale_after_ms.least)
  expect(await beat()).toMatchObject({ staleAfterMs: settings.stale_after_ms.least })
  for (const bad of [
    settings.stale_after_ms.least - 1,
    'soon',
    '',
    '1.5',
    '-5',
    'inf',
    'nan',
    '1e400',
    '0x1000000000000000',
  ]) {
    await record.config('stale_after_ms', bad)
    expect(await beat(), String(bad)).toMatchObject({ staleAfterMs: settings.stale_after_ms.default })
  }
})
