import { naming } from '../contract/hub-set.js'
import { hubSetOf } from '../set/hub-set-of.js'
import type { Client } from './open-client.js'

/** Clients of several hubs as one: their calls as of every set, and their sweeps. */
export function clientSetOf(clients: ReadonlyMap<string, Client>): Client {
  return {
    ...hubSetOf(clients),
    runSweep: async (name) => {
      const runs = await Promise.all(
        [...clients].map(([hub, client]) =>
          naming(hub, async () => ({ hub, runs: await client.runSweep(name) })),
        ),
      )
      return runs.flatMap(({ hub, runs: own }) => own.map((run) => ({ ...run, hub })))
    },
  }
}
