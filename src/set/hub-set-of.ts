import type { HubCalls } from '../contract/hub.js'
import { checkedHubs } from '../contract/hub-set.js'
import { administrationCalls } from './administration.js'
import { fenceCalls } from './fences.js'
import { listCalls } from './lists.js'
import { logCalls } from './log.js'
import { membersOf } from './members.js'
import { messageCalls } from './messages.js'
import { operatorCalls } from './operating.js'
import { overviewCalls } from './overview.js'
import { effectCalls, sessionCalls } from './sessions.js'

/**
 * Several hubs as one. A message is a call on the hub of its conversation and on no other; what has an id is on the
 * hub that the id names (`<hub>:<id>`); lists, counts and audits are of all of them; fences of the whole hub or of a
 * host, settings and principals stand on every one. Of a single hub it makes nothing: it is that hub itself.
 * @throws INVALID_ARGUMENT for names that make no set
 */
export function hubSetOf<Hub extends HubCalls>(hubs: ReadonlyMap<string, Hub>): Hub | HubCalls {
  checkedHubs([...hubs.keys()])
  const [only] = hubs.values()
  if (hubs.size === 1 && only !== undefined) return only
  const members = membersOf(hubs)
  return {
    ...messageCalls(members),
    ...listCalls(members),
    ...overviewCalls(members),
    ...logCalls(members),
    ...fenceCalls(members),
    ...operatorCalls(members),
    ...sessionCalls(members),
    ...effectCalls(members),
    ...administrationCalls(members),
    close: async () => {
      const ends = await Promise.allSettled(members.all.map(({ calls }) => calls.close()))
      for (const end of ends) if (end.status === 'rejected') throw end.reason
    },
  }
}
