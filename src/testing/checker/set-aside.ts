// What the failover rule made unknown (`history_lost`): each is held against the entries of the log that say why its
// host was doubted, and for which of its nodes; a fault has to have made that reason.

import { logged, recorded } from './evidence.js'
import { isNode, slotOf } from './exclusion.js'
import type { Times } from './times.js'
import type { Case, Entry, Fault, Violation } from './words.js'

/** Faults that take entries of the log away, by which nodes and hubs see that there was a loss. */
const losing = new Set(['aof-old-copy', 'aof-cut', 'aof-flip', 'aof-missing-manifest', 'flushall'])
/** Faults after which the record cannot show that it has lost nothing. */
const demoting = new Set(['replica', 'primary-killed', 'primary-frozen', 'slot-moved'])
/** Faults that leave a node behind that never speaks again, under the name it had. */
const burying = new Set(['mirror-deleted', 'mirror-corrupt'])

/** A fault is written down a moment before it is made. */
const slackNs = 500e6

/** What is wrong with an id that is unknown because of `history_lost`. */
export function setAsideBy(file: Case, times: Times): (id: string) => Violation[] {
  const losses = file.entries.filter(({ verb }) => verb === 'history_lost')
  const judged = new Map<Entry, string | undefined>()
  return (id) => {
    const [delivery = ''] = id.split('/')
    const steps = file.stories.get(delivery)?.steps ?? []
    const last = steps.findLast(
      ({ entry, moves, attempts }) =>
        entry.verb === 'set_aside' && [...moves, ...attempts].some((move) => move.id === id),
    )
    const row = file.deliveries.get(delivery)
    const shown = row === undefined ? [] : [recorded(row)]
    if (last === undefined) return [unnamed(delivery, `${id} is unknown, and no set_aside made it so`, shown)]
    const { entry } = last
    if (!judged.has(entry)) judged.set(entry, wrongWith(file, times, losses, entry))
    const wrong = judged.get(entry)
    if (wrong === undefined) return []
    const evidence = [...shown, logged(entry, delivery), ...losses.map((loss) => logged(loss))]
    return [unnamed(delivery, `${id} was set aside: ${wrong}`, evidence)]
  }
}

/** Why nothing that was done to the fleet explains this; nothing where it does. */
function wrongWith(file: Case, times: Times, losses: readonly Entry[], entry: Entry): string | undefined {
  const node = entry.more.get('for')
  if (node === undefined) return 'the log does not say for which node'
  const loss = losses.findLast(({ index }) => index < entry.index)
  if (loss === undefined) return 'the log says of no loss'
  const why = loss.more.get('why') ?? ''
  const before = times.latest(loss.index) + slackNs
  const made = file.faults.filter(({ from }) => from <= before)
  if (/^log entry \S+, seen by \S+, is gone$/.test(why)) {
    return made.some(({ name }) => losing.has(name)) ? undefined : `${why}, and no fault took it away`
  }
  if (why !== 'the server was a replica') return `no fault makes this: ${why}`
  const demoted = made.filter(({ name }) => demoting.has(name))
  if (demoted.length === 0) return `${why}, and nothing made it one`
  const since = Math.min(...demoted.map(({ from }) => from)) - slackNs
  const wasAway = made.some((fault) => fault.node !== undefined && wasHit(fault, node, since))
  return wasAway ? undefined : `${node} did not present what it saw, and nothing was done to it`
}

function wasHit({ name, node, to }: Fault, recordedName: string, since: number): boolean {
  if (!isNode(slotOf(recordedName), slotOf(node ?? ''))) return false
  return to >= since || burying.has(name)
}

function unnamed(id: string, text: string, evidence: readonly string[]): Violation {
  return { invariant: 'unknown', id, text, evidence }
}
