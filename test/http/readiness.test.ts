import { describe, expect, it } from 'vitest'
import { sweepSetting } from '../../src/contract/sweeps.js'
import { type Answer, call, startHubServer, type TestHubServer } from '../support/http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { until } from '../support/until.js'

// What readiness says of the server and of the sweeps. A hub looks at both every few seconds, which is what these
// tests wait for: they do it at the same time, each on a server of its own, whose settings they change.

interface Check {
  readonly ok: boolean
  readonly ageMs?: number
  readonly why?: string
}
interface Readiness {
  readonly ready: boolean
  readonly checks: Readonly<Record<'record' | 'log_tail' | 'durability' | 'sweeps' | 'serving', Check>>
}

interface Stage {
  readonly redis: TestServer
  readonly record: OpenRecord
  readonly server: TestHubServer
}

/** A test with a server, a record and a hub of its own. */
function staged(test: (stage: Stage) => Promise<void>): () => Promise<void> {
  return async () => {
    const redis = await startTestServer()
    try {
      const record = await openRecord(redis)
      const server = await startHubServer(record)
      try {
        await test({ redis, record, server })
      } finally {
        await server.close()
        await record.close()
      }
    } finally {
      await redis.stop()
    }
  }
}

const readiness = ({ url }: TestHubServer) => call<Readiness>(url, { path: '/readyz' })

/** Waits until readiness has this status; answers what it says then. */
async function becomes(server: TestHubServer, status: 200 | 503): Promise<Readiness> {
  return await until<Readiness | undefined>(
    async () => {
      const answer: Answer<Readiness> = await readiness(server)
      return answer.status === status ? answer.json : undefined
    },
    { what: `/readyz ${status}`, everyMs: 50 },
  )
}

/** Sets a setting of the server. */
const set = ({ record }: Stage, name: string, value: string) => record.send('CONFIG', 'SET', name, value)

describe.concurrent('readiness', () => {
  it(
    'says how server and sweeps are, beside the record',
    staged(async ({ server }) => {
      const { status, json } = await readiness(server)
      expect(status).toBe(200)
      expect(Object.keys(json.checks)).toEqual([
        'record',
        'log_tail',
        'durability',
        'attestation',
        'sweeps',
        'serving',
      ])
      expect(json.checks).toMatchObject({
        durability: { ok: true, ageMs: expect.any(Number) },
        sweeps: { ok: true, ageMs: expect.any(Number) },
      })
    }),
  )

  it.each([
    ['maxmemory-policy', 'allkeys-lru', 'noeviction'],
    ['appendfsync', 'everysec', 'always'],
    ['no-appendfsync-on-rewrite', 'yes', 'no'],
    ['appendonly', 'no', 'yes'],
  ])('faults.md 4: is red while %s is %s, and says so', (name, bad, good) =>
    staged(async (stage) => {
      const { server } = stage
      await set(stage, name, bad)
      const red = await becomes(server, 503)
      expect(red.checks.durability).toMatchObject({ ok: false })
      expect(red.checks.durability.why).toContain(`${name} is "${bad}"`)
      expect(red.checks).toMatchObject({ record: { ok: true }, sweeps: { ok: true }, serving: { ok: true } })
      await set(stage, name, good)
      expect((await becomes(server, 200)).checks.durability).not.toHaveProperty('why')
      const changes = server.lines.map((line) => JSON.parse(line) as { trouble?: string; msg: string })
      const told = changes.filter(({ msg }) => /the server (may lose|keeps)/.test(msg))
      expect(told.map(({ msg }) => msg)).toEqual([
        'the server may lose what it is given: the hub is not ready',
        'the server keeps what it is given again',
      ])
    })(),
  )

  it(
    'takes appendfsync everysec where it was chosen',
    staged(async (stage) => {
      const { record, server } = stage
      await set(stage, 'appendfsync', 'everysec')
      await becomes(server, 503)
      await record.config('accept_everysec', 1)
      await becomes(server, 200)
      await record.config('accept_everysec', 0)
      await becomes(server, 503)
      await set(stage, 'appendfsync', 'always')
      await becomes(server, 200)
    }),
  )

  it(
    'is red from the start where the server is not right',
    staged(async (stage) => {
      await set(stage, 'maxmemory-policy', 'allkeys-lru')
      const late = await startHubServer(stage.record)
      const { status, json } = await readiness(late)
      await late.close()
      expect([status, json.checks.durability.ok]).toEqual([503, false])
    }),
  )

  it(
    'is red where nobody may look',
    staged(async ({ redis, record }) => {
      await record.send('ACL', 'SETUSER', 'blind', 'on', '>secret', '~*', '&*', '+@all', '-info')
      const url = redis.url.replace('redis://', 'redis://blind:secret@')
      const blind = await startHubServer(record, { redis: url })
      try {
        const { status, json } = await readiness(blind)
        expect(status).toBe(503)
        expect(json.checks.durability).toMatchObject({ ok: false, why: 'info is "INFO is forbidden"' })
      } finally {
        await blind.close()
      }
    }),
  )

  it(
    'is red while a scheduled sweep is late, and names it',
    staged(async ({ record }) => {
      await record.config(sweepSetting('deadlines'), 100)
      const idle = await startHubServer(record, {
        sweeps: async () => ({
          scheduled: true,
          run: async () => {
            throw new Error('it never runs')
          },
          stop: async () => undefined,
        }),
      })
      try {
        const red = await becomes(idle, 503)
        expect(red.checks.sweeps).toMatchObject({ ok: false, why: 'not in time: deadlines' })
        expect(red.checks.durability).toMatchObject({ ok: true })
        await record.config(sweepSetting('deadlines'), 600_000)
        await record.functions.noteSweep('deadlines', {
          ...{ found: 0, repaired: 0, left: 0, notes: [], cursor: '', by: 'tests' },
          durationMs: 1,
        })
        await becomes(idle, 200)
      } finally {
        await idle.close()
      }
    }),
  )
})
