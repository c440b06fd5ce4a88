import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { openHub } from '../../src/hub/open-hub.js'
import {
  type Child,
  killChildren,
  readMarks,
  startNodeProcess,
  startSweeperProcess,
} from '../support/child.js'
import { freshPath, stopNodes } from '../support/nodes.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'
import { openSwept, type SweptRecord } from '../sweeps/stage.js'

/** Kills of a run; fifty and more by hand: HOLDFAST_KILLS=50. */
const kills = Number(process.env['HOLDFAST_KILLS'] ?? 16)
const messagesBetweenKills = 12

let server: TestServer
let record: SweptRecord

beforeAll(async () => {
  server = await startTestServer()
  record = await openSwept(server)
  await record.config('heartbeat_ms', 100)
  await record.config('stale_after_ms', 600)
})
afterEach(killChildren)
afterAll(async () => {
  await stopNodes()
  await record.close()
  await server.stop()
})

/** A process that is started again after each kill. */
interface Kept {
  readonly name: string
  kill(): Promise<void>
}

function keep(name: string, start: () => Child): Kept {
  let child = start()
  return {
    name,
    kill: async () => {
      await child.kill()
      child = start()
    },
  }
}

it(`${kills} kills of hub, node and Redis under load: one round of sweeps, and an audit has nothing to say`, {
  timeout: 300_000,
}, async () => {
  const marks = freshPath('marks')
  const nodes = ['a', 'b'].map((host) => {
    const mirror = freshPath('db')
    const options = { redis: server.url, hub: record.name, host, mirror, marks, handlerMs: 3 }
    return keep(`node of ${host}`, () => startNodeProcess(options))
  })
  const sweeper = () => startSweeperProcess({ redis: server.url, hub: record.name, lockMs: 1000 })
  const redis: Kept = {
    name: 'Redis',
    kill: async () => {
      await server.kill9()
      await server.restart()
    },
  }
  const victims = [...nodes, keep('hub', sweeper), redis]

  const hub = await openHub({ redis: server.url, hub: record.name })
  const accepted: string[] = []
  let producing = true
  async function produce(): Promise<void> {
    for (let at = 0; producing; at += 1) {
      const to = at % 3 === 0 ? [{ host: 'a' }, { host: 'b' }] : [{ host: at % 3 === 1 ? 'a' : 'b' }]
      const message = { key: `k${at}`, conversation: `c${at % 7}`, sender: 'tests', to, payload: `${at}` }
      accepted.push((await untilAnswered(() => hub.accept(message))).id)
    }
  }
  const production = produce()
  for (let killed = 0; killed < kills; killed += 1) {
    const before = accepted.length
    await until(() => accepted.length >= before + messagesBetweenKills, { timeoutMs: 30_000 })
    await victims[killed % victims.length]?.kill()
  }
  producing = false
  await production
  await hub.close()

  // What a killed node had begun is unknown; everything else comes to its end.
  const open = async () => {
    const { queued, claimed, mirrored, awaiting, held } = await record.parts.functions.tally()
    const unknown = (await record.parts.hub.unknown()).length
    return queued + claimed + mirrored + held === 0 && awaiting === unknown
  }
  await until(open, { timeoutMs: 60_000, everyMs: 100, what: 'every delivery done or listed' })
  await record.sweepAll()
  expect((await record.parts.hub.audit()).disagreements).toEqual([])
  await record.checkInvariants()

  const begun = readMarks(marks).filter(({ what }) => what === 'begin')
  expect(new Set(begun.map(({ delivery }) => delivery)).size).toBe(begun.length)
  const rows = await Promise.all(accepted.map((id) => record.parts.hub.message(id)))
  const deliveries = rows.flatMap((each) => each.deliveries)
  expect(deliveries.filter(({ attempts }) => attempts.length === 0)).toEqual([])
})

async function untilAnswered<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED')) throw error
    }
  }
}
