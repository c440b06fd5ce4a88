import { settingIn } from '../contract/settings.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { readConfiguration } from './configuration.js'

/** A node by its names. */
export interface NodeName {
  readonly host: string
  readonly node: string
}

/** Nodes that have not left, by whether they are heard. */
export interface Nodes {
  readonly heard: readonly NodeName[]
  /** Not within `stale_after_ms`; those of retired hosts are left out, for nobody waits for them. */
  readonly silent: readonly NodeName[]
}

/** One look at the nodes by their heartbeats, whatever else the record holds. */
export async function nodesByHeartbeat(reader: Reader, keys: Keys, nowMs: number): Promise<Nodes> {
  const heardFrom = nowMs - settingIn(await readConfiguration(reader, keys), 'stale_after_ms')
  const [late, fresh] = (await reader.all([
    ['ZRANGEBYSCORE', keys.nodes, '-inf', heardFrom],
    ['ZRANGEBYSCORE', keys.nodes, `(${heardFrom}`, '+inf'],
  ])) as [string[], string[]]
  const silent = late.map(nodeName)
  const hosts = [...new Set(silent.map(({ host }) => host))]
  const retired = await reader.all(hosts.map((host) => ['HEXISTS', keys.host(host), 'retired_at']))
  const gone = new Set(hosts.filter((_, at) => retired[at] === 1))
  return { heard: fresh.map(nodeName), silent: silent.filter(({ host }) => !gone.has(host)) }
}

/** `<host>/<node>`, as the list of nodes has it. */
function nodeName(name: string): NodeName {
  const end = name.indexOf('/')
  return { host: name.slice(0, end), node: name.slice(end + 1) }
}
