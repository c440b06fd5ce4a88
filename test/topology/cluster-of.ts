import { freePort } from '../../src/record/embedded.js'
import { until } from '../support/until.js'
import { createTroop, type Member } from './processes.js'

/** A Redis Cluster of real processes on loopback. */
export interface TestCluster {
  readonly url: string
  readonly members: readonly Member[]
  /** The primary that serves the slot of a hub, and its replicas, as the Cluster says now. */
  placeOf(hub: string): Promise<{ primary: Member; replicas: readonly Member[] }>
  /** Every primary, as the Cluster says now. */
  primaries(): Promise<readonly Member[]>
  slotOf(hub: string): Promise<number>
  idOf(member: Member): Promise<string>
  /** Resolves when every member that runs says that all slots are served. */
  whenWhole(): Promise<void>
  /** Moves the slot of a hub with all its keys; `between` is called while it is half moved. */
  moveSlot(hub: string, to: Member, between?: () => Promise<void>): Promise<void>
  end(): Promise<void>
}

const nodeTimeoutMs = 1500
const slots = 16_384
const wholeWithinMs = 30_000

/** As many primaries as are asked for, each with so many replicas. */
export async function startCluster(primaries = 3, replicas = 1): Promise<TestCluster> {
  const troop = createTroop()
  const members: Member[] = []
  const buses: number[] = []
  for (let made = 0; made < primaries * (1 + replicas); made += 1) {
    const bus = await freePort()
    buses.push(bus)
    members.push(
      await troop.server({
        'cluster-enabled': 'yes',
        'cluster-config-file': 'nodes.conf',
        'cluster-node-timeout': nodeTimeoutMs,
        'cluster-port': bus,
        'cluster-replica-validity-factor': 0,
      }),
    )
  }
  try {
    await Promise.all(members.map((member) => member.start()))
    const [first, ...others] = members
    if (first === undefined) throw new Error('a Cluster has members')
    for (const [at, other] of others.entries()) {
      await first.call('CLUSTER', 'MEET', '127.0.0.1', other.port, buses[at + 1] ?? 0)
    }
    for (let at = 0; at < primaries; at += 1) {
      const [from, to] = [
        Math.floor((slots * at) / primaries),
        Math.floor((slots * (at + 1)) / primaries) - 1,
      ]
      await members[at]?.call('CLUSTER', 'ADDSLOTSRANGE', from, to)
    }
    await untilKnown(members)
    for (let at = primaries; at < members.length; at += 1) {
      await members[at]?.call('CLUSTER', 'REPLICATE', await idOf(members[at % primaries] as Member))
    }
    await whenWhole()
    await untilReplicating(members.slice(primaries))
  } catch (error) {
    await troop.end()
    throw error
  }

  async function whenWhole(): Promise<void> {
    await until(async () => (await Promise.all(members.map(isWhole))).every(Boolean), {
      timeoutMs: wholeWithinMs,
      what: 'the Cluster serving all slots',
    })
  }
  async function slotOf(hub: string): Promise<number> {
    return Number(await someone(members).then((member) => member.call('CLUSTER', 'KEYSLOT', `{${hub}}`)))
  }

  /** Who serves what, by a member that answers and does not think itself cut off. */
  async function ranges(): Promise<[number, number, ...[string, number][]][]> {
    for (const member of members) {
      const state = String(await member.call('CLUSTER', 'INFO').catch(() => ''))
      if (!state.includes('cluster_state:ok')) continue
      return (await member.call('CLUSTER', 'SLOTS')) as [number, number, ...[string, number][]][]
    }
    throw new Error('no member says that the Cluster is whole')
  }
  const memberAt = ([, port]: [string, number]) => {
    const found = members.find((member) => member.port === port)
    if (found === undefined) throw new Error(`no member on port ${port}`)
    return found
  }

  return {
    url: `redis-cluster://${members.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    members,
    slotOf,
    idOf,
    whenWhole,
    placeOf: async (hub) => {
      const slot = await slotOf(hub)
      const range = (await ranges()).find(([from, to]) => from <= slot && slot <= to)
      const [primary, ...replicas] = (range?.slice(2) ?? []) as [string, number][]
      if (primary === undefined) throw new Error(`nobody serves slot ${slot}`)
      return { primary: memberAt(primary), replicas: replicas.map(memberAt) }
    },
    primaries: async () => [
      ...new Set((await ranges()).map(([, , primary]) => memberAt(primary as [string, number]))),
    ],
    moveSlot: async (hub, to, between) => {
      const slot = await slotOf(hub)
      const range = (await ranges()).find(([from, end]) => from <= slot && slot <= end)
      const from = memberAt(range?.[2] as [string, number])
      await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from))
      await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to))
      for (let moved = 0; ; ) {
        const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', slot, 20)) as string[]
        if (keys.length === 0) break
        await from.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys)
        moved += keys.length
        if (moved === keys.length) await between?.()
      }
      const id = await idOf(to)
      await to.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
      await from.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
      for (const member of members)
        await member.call('CLUSTER', 'SETSLOT', slot, 'NODE', id).catch(() => undefined)
    },
    end: () => troop.end(),
  }
}

async function idOf(member: Member): Promise<string> {
  return String(await member.call('CLUSTER', 'MYID'))
}

async function someone(members: readonly Member[]): Promise<Member> {
  for (const member of members) {
    if ((await member.call('PING').catch(() => '')) === 'PONG') return member
  }
  throw new Error('no member answers')
}

async function isWhole(member: Member): Promise<boolean> {
  // One that was killed has no say.
  const state = String(await member.call('CLUSTER', 'INFO').catch(() => 'cluster_state:ok'))
  return state.includes('cluster_state:ok')
}

async function untilKnown(members: readonly Member[]): Promise<void> {
  await until(
    async () => {
      const states = await Promise.all(members.map((member) => member.call('CLUSTER', 'INFO')))
      return states.every((state) => String(state).includes(`cluster_known_nodes:${members.length}`))
    },
    { timeoutMs: wholeWithinMs, what: 'the members of the Cluster knowing each other' },
  )
}

async function untilReplicating(replicas: readonly Member[]): Promise<void> {
  for (const replica of replicas) {
    await until(async () => (await replica.info('replication')).get('master_link_status') === 'up', {
      timeoutMs: wholeWithinMs,
      what: `the replica on port ${replica.port} being in step`,
    })
  }
}
