// @ts-check
// In place of one server: three primaries of a Redis Cluster with a replica each. To the rest of torture it is the
// primary that serves the slot of the hub, whichever that is.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from './built-record.mjs'
import { freePorts } from './ports.mjs'
import { createServer } from './redis.mjs'
import { untilDone } from './waiting.mjs'

/** @typedef {import('./redis.mjs').RedisServer} RedisServer */
/** @typedef {RedisServer & { moveSlot(random: import('./random.mjs').Random): Promise<void> }} ClusterServer */

const primaries = 3
const slots = 16_384
const nodeTimeoutMs = 1500
const wholeWithinMs = 20_000
const migrateWithinMs = 5000
const keysAtOnce = 200
const lookEveryMs = 200

/** @param {Omit<import('./redis.mjs').ServerOptions, 'port'> & { tag: string }} given @returns {Promise<ClusterServer>} */
export async function createCluster(given) {
  const ports = await freePorts(primaries * 4)
  const members = ports.slice(0, primaries * 2).map((port, at) => {
    const member = createServer({ ...given, port, dir: join(given.dir, String(port)) })
    member.args = [
      ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)],
      ...['--cluster-port', String(ports[primaries * 2 + at]), '--cluster-config-file', 'nodes.conf'],
      ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
    ]
    return member
  })
  const busOf = new Map(members.map(({ port }, at) => [port, ports[primaries * 2 + at]]))
  const [first] = /** @type {[RedisServer]} */ (members)
  const url = `redis-cluster://${members.map(({ port }) => `127.0.0.1:${port}`).join(',')}`
  /** @type {Promise<Awaited<ReturnType<typeof openStore>>> | undefined} */
  let store
  let current = first
  let [isMade, isLooking] = [false, false]
  let slot = 0

  async function make() {
    for (const { port } of members.slice(1)) {
      await first.call(['CLUSTER', 'MEET', '127.0.0.1', port, busOf.get(port) ?? 0])
    }
    for (let at = 0; at < primaries; at += 1) {
      const [from, to] = [
        Math.floor((slots * at) / primaries),
        Math.floor((slots * (at + 1)) / primaries) - 1,
      ]
      await members[at]?.call(['CLUSTER', 'ADDSLOTSRANGE', from, to])
    }
    for (const [at, replica] of members.slice(primaries).entries()) {
      const id = String(await members[at]?.call(['CLUSTER', 'MYID']))
      await untilDone(() => replica.call(['CLUSTER', 'REPLICATE', id]), wholeWithinMs)
    }
    slot = Number(await first.call(['CLUSTER', 'KEYSLOT', given.tag]))
    await whenWhole()
    isMade = true
    void keepLooking()
  }

  /** Every member that runs says that all slots are served, and every primary has a replica. */
  async function whenWhole() {
    await untilDone(async () => {
      for (const member of members) {
        const info = String(await member.call(['CLUSTER', 'INFO']))
        if (!info.includes('cluster_state:ok')) throw new Error(`${member.port}: ${info.slice(0, 40)}`)
        const replication = String(await member.call(['INFO', 'replication']))
        if (!/connected_slaves:[1-9]|master_link_status:up/.test(replication)) {
          throw new Error(`${member.port} has no replica, or is not in step`)
        }
      }
    }, wholeWithinMs)
  }

  async function lookUp() {
    for (const member of members) {
      const info = String(await member.call(['CLUSTER', 'INFO'], 300).catch(() => ''))
      if (!info.includes('cluster_state:ok')) continue
      const ranges = /** @type {[number, number, [string, number]][]} */ (
        await member.call(['CLUSTER', 'SLOTS'], 300)
      )
      const found = ranges.find(([from, to]) => from <= slot && slot <= to)
      const primary = members.find(({ port }) => port === found?.[2][1])
      if (primary !== undefined) current = primary
      return
    }
  }

  async function keepLooking() {
    isLooking = true
    for (; isLooking; await sleep(lookEveryMs)) await lookUp().catch(() => {})
  }

  /** @type {ClusterServer} */
  const cluster = {
    url,
    port: first.port,
    get pid() {
      return current.pid
    },
    dir: given.dir,
    args: [],
    mayEnd: false,
    get isRunning() {
      return current.isRunning
    },
    target: () => ({ role: 'redis', name: `redis ${current.port}`, pid: current.pid }),
    start: async () => {
      for (const member of members) member.kill('SIGCONT')
      await Promise.all(members.map((member) => member.start()))
      if (!isMade) await make()
    },
    kill9: async () => {
      await lookUp()
      await current.kill9()
    },
    stop: async () => {
      await Promise.all(members.map((member) => member.stop()))
    },
    kill: (signal) => {
      if (signal !== 'SIGCONT') return current.kill(signal)
      return members.map((member) => member.kill(signal)).some(Boolean)
    },
    call: async (args, deadlineMs = 1000) => {
      store ??= openStore({ url, tag: given.tag, name: 'torture', deadlineMs: 1000 })
      const open = await store.catch((error) => {
        store = undefined
        throw error
      })
      return await open.call(args, { deadlineMs })
    },
    moveSlot: async (random) => {
      await whenWhole()
      await lookUp()
      const from = current
      const roles = await Promise.all(members.map((member) => member.call(['INFO', 'replication'])))
      const others = members.filter((member, at) => member !== from && /role:master/.test(String(roles[at])))
      const to = random.pick(others)
      const [fromId, toId] = [await from.call(['CLUSTER', 'MYID']), await to.call(['CLUSTER', 'MYID'])]
      await to.call(['CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(fromId)])
      await from.call(['CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(toId)])
      for (;;) {
        const keys = /** @type {string[]} */ (await from.call(['CLUSTER', 'GETKEYSINSLOT', slot, keysAtOnce]))
        if (keys.length === 0) break
        const move = ['MIGRATE', '127.0.0.1', to.port, '', 0, migrateWithinMs, 'KEYS', ...keys]
        await from.call(move, migrateWithinMs)
      }
      for (const member of [to, from]) await member.call(['CLUSTER', 'SETSLOT', slot, 'NODE', String(toId)])
    },
    dispose: async () => {
      isLooking = false
      await store?.then((open) => open.close()).catch(() => {})
      await Promise.all(members.map((member) => member.dispose()))
    },
  }
  return cluster
}
