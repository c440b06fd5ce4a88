import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import { expect, it } from 'vitest'
import { openClient } from '../../src/client/index.js'
import { holdfast } from '../../src/fastify.js'
import { initRecord, openHub } from '../../src/hub/open-hub.js'
import { openHubSet } from '../../src/hub/open-hub-set.js'
import { startEmbedded } from '../../src/record/embedded.js'
import { crashTest, openTestRecord } from '../../src/testing/index.js'

// Functions that open something refuse options that they do not know, before anything is connected, started or made.

/** Nobody listens there: a call that connects says so, and not what is wrong with its options. */
const redis = 'redis://127.0.0.1:1'
const dataDir = join(tmpdir(), `holdfast-never-made-${process.pid}`)
const register = async (options: object) => {
  const app = Fastify()
  app.register(holdfast, { prefix: '/holdfast', ...options } as never)
  try {
    await app.ready()
  } finally {
    await app.close()
  }
}

it.each<[name: string, call: (options: never) => unknown, options: unknown, says: string]>([
  [
    'openHub',
    openHub,
    { redis, hubb: 'a', onLost: 5 },
    'onLost: must be a function, not 5; unknown member "hubb" (known: redis, hub,',
  ],
  ['openHub', openHub, undefined, 'options: is required'],
  [
    'openHub',
    openHub,
    { redis, deadlineMs: '5s' },
    'deadlineMs: must be a whole number from 1 to 2147483647, not a string',
  ],
  [
    'initRecord',
    initRecord,
    { redis, afterloss: true },
    'unknown member "afterloss" (known: redis, hub, luaDir, afterLoss, onTrouble)',
  ],
  [
    'openHubSet',
    openHubSet,
    { redis, hub: 'a', hubs: [] },
    'hubs: a set of hubs has no name; unknown member "hub" (known: ',
  ],
  [
    'openClient',
    openClient,
    { url: 'http://h', tokn: 'secret' },
    'unknown member "tokn" (known: url, token, tls,',
  ],
  [
    'startEmbedded',
    startEmbedded,
    { dataDir, prt: 1 },
    'unknown member "prt" (known: dataDir, port, log, readyDeadlineMs)',
  ],
  ['openTestRecord', openTestRecord, { setings: {} }, 'unknown member "setings" (known: settings)'],
  ['crashTest', crashTest, { handlr: 'a.js' }, 'handler: is required; unknown member "handlr" (known: '],
  [
    'holdfast',
    register,
    { redis, limits: { rate: 1 }, log: 5 },
    'log: must be a logger, which has debug, info, warn and error, not 5; limits: unknown member "rate" (known: bodyBytes, ',
  ],
])('%s refuses %#', async (name, call, options, says) => {
  await expect(async () => await call(options as never)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining(`INVALID_ARGUMENT ${name}: ${says}`),
  })
  expect(existsSync(dataDir)).toBe(false)
})
