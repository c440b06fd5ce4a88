import { beforeEach } from 'vitest'
import type { HubCalls } from '../../src/contract/hub.js'
import { hubNames } from '../../src/contract/hub-set.js'
import { openHub } from '../../src/hub/open-hub.js'
import { hubSetOf } from '../../src/set/hub-set-of.js'
import type { Environment, Settings, Surface } from '../conformance/environment.js'
import { redisEnvironment } from '../conformance/environments.js'
import { conformance } from '../conformance/suite.js'
import { openRecord } from '../support/record.js'
import { startTestServer } from '../support/server.js'
import { memberView } from './member-view.js'

/** The suite through a set of so many hubs, of which one is what the suite speaks of. */
async function setEnvironment(count: number): Promise<Environment> {
  const server = await startTestServer()
  const onOne = await redisEnvironment(async () => server)
  return {
    makeRecord: async (settings: Settings) => {
      const surface: Surface = await onOne.makeRecord(settings)
      const member = surface.record.name
      const others = count === 1 ? [] : hubNames(`${member}-1..${member}-${count - 1}`)
      const hubs = new Map<string, HubCalls>([[member, surface.hub]])
      const closers: (() => Promise<void>)[] = []
      for (const name of others) {
        const record = await openRecord(server, { name })
        for (const [setting, value] of Object.entries(settings)) await record.config(setting, value)
        const hub = await openHub({ redis: server.url, hub: name })
        hubs.set(name, hub)
        closers.push(async () => {
          await hub.close()
          await record.checkInvariants()
          await record.close()
        })
      }
      const set = hubSetOf(hubs)
      const asIs: ReturnType<typeof memberView> = { hub: set, plainOf: (value) => value }
      const view = count === 1 ? asIs : memberView(set, member, [...hubs.keys()])
      const { hub, plainOf } = view
      return {
        ...surface,
        hub,
        reference: hub,
        transport: async (host) => {
          const transport = await surface.transport(host)
          return new Proxy(transport, {
            get: (_, name) => {
              const call = Reflect.get(transport, name) as unknown
              if (typeof call !== 'function') return call
              return async (...given: unknown[]) => plainOf(await Reflect.apply(call, transport, given))
            },
          })
        },
        close: async () => {
          for (const close of closers) await close()
          await surface.close()
        },
      }
    },
    close: onOne.close,
  }
}

/** A wide act stands on the hubs that took it, also where one has no record: `test/set/fences.test.ts`. */
const unlike = 'answer that there is no record, once it is gone, and recover with it'
beforeEach(({ task, skip }) =>
  skip(task.name === unlike && task.fullTestName.includes('eight'), 'a set of several differs'),
)

conformance('through a set of one hub', () => setEnvironment(1))
conformance('through a set of eight hubs', () => setEnvironment(8))
