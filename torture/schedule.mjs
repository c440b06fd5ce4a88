// @ts-check
// Which fault begins when, where and for how long: a seed repeats it. The faults that need nothing but the processes
// of a run are here; every file of faults/ brings one more.
import { readdirSync } from 'node:fs'
import { points } from './built.mjs'
import { createRandom } from './random.mjs'
import { untilDone } from './waiting.mjs'

/** @typedef {import('./world.mjs').World} World */
/** @typedef {import('./random.mjs').Random} Random */
/** @typedef {import('./keeper.mjs').Keeper} Keeper */
/** What there is to be hit: names of processes by role. @typedef {{ hubs: string[], nodes: string[], producers: string[] }} Targets */

/**
 * One fault as it was drawn. `at` and `for` in milliseconds, from the beginning of the load.
 * @typedef {{ id: number, name: string, target: string, atMs: number, forMs: number }} Planned
 */

/**
 * A kind of fault. `begin` makes it and returns what ends it; both may take a moment, and must not wait for ever.
 * @typedef {object} Fault
 * @property {string} name
 * @property {boolean} [loses] it takes away what was acknowledged: made only where it is named
 * @property {boolean} [doubts] nothing is lost, but nobody can show that: what waits may become unknown. Made only where it is named
 * @property {boolean} [cluster] it needs a Cluster (`--cluster`)
 * @property {boolean} [orphans] what its node had begun may stay unknown, although that has a probe
 * @property {() => string | undefined} [needs] why it cannot be made on this machine
 * @property {(world: World) => Promise<(() => Promise<void> | void) | void>} [prepare] before anything is started: a proxy, another folder, an environment. What it returns puts it back when everything has ended
 * @property {(targets: Targets) => string[]} [targets] what it may hit, one of which is drawn: two faults never hit the same at a time. Its own name when absent
 * @property {number} [weight] how often it is drawn beside the others (1)
 * @property {number} [leastMs] it lasts at least so long (0)
 * @property {number} [longestMs] and at most so long (2000)
 * @property {number} [restMs] no other hits the same target for so long after it has ended (1000)
 * @property {(world: World, random: Random, planned: Planned) => Promise<() => Promise<void> | void>} begin
 */

/** What a fault saw of the fleet that must never be: the run is red, whatever its history says. */
export class Misbehaviour extends Error {}

const meanGapMs = 700
/** Of a fault that does not say so itself. */
export const restMs = 1000
const firstAtMs = 1000
const upAgainMs = 20_000
/** A server that has just come back works for so long, or nothing would ever get through. */
const redisRestMs = 2500
/** A command of a fault is given up where the server does not take it: it may be down already. */
const commandMs = 5000

const onRedis = () => ['redis']
/** @type {(role: 'hub' | 'node' | 'producer') => (targets: Targets) => string[]} */
const each = (role) => (targets) => targets[`${role}s`].map((name) => `${role} ${name}`)

/** @type {Fault[]} */
const ownFaults = [
  killed('hub'),
  killed('node'),
  killed('producer'),
  frozen('hub', { leastMs: 200, longestMs: 4000 }),
  frozen('node', { leastMs: 200, longestMs: 4000 }),
  {
    name: 'kill-point',
    weight: 2,
    targets: (targets) => [...each('node')(targets), ...each('hub')(targets)],
    longestMs: 3000,
    begin: async (world, random, { target }) => {
      const keeper = world.find(target)
      const verbs = keeper.role === 'hub' ? ['accept', 'fan_out'] : []
      const fit = points.filter((point) => {
        const isHubs = point.startsWith('accept.') || point.startsWith('fan_out.')
        return verbs.length > 0 ? isHubs : !isHubs
      })
      keeper.arm(random.pick(fit), random.int(1, 40))
      return async () => {
        if (keeper.disarm()) await keeper.whenUp(upAgainMs)
      }
    },
  },
  {
    name: 'kill-redis',
    targets: onRedis,
    restMs: redisRestMs,
    begin: async ({ redis }) => {
      await redis.kill9()
      return () => redis.start()
    },
  },
  {
    name: 'freeze-redis',
    targets: onRedis,
    longestMs: 3000,
    restMs: redisRestMs,
    begin: async ({ redis }) => {
      redis.kill('SIGSTOP')
      return () => void redis.kill('SIGCONT')
    },
  },
  {
    name: 'read-only',
    targets: onRedis,
    restMs: redisRestMs,
    begin: async ({ redis }) => {
      await redis.call(['CONFIG', 'SET', 'min-replicas-to-write', 1])
      return () => insist(redis, ['CONFIG', 'SET', 'min-replicas-to-write', 0])
    },
  },
  {
    // Not always made: afterwards nobody can show that nothing was lost, and whole hosts may be set aside.
    name: 'replica',
    doubts: true,
    targets: onRedis,
    restMs: redisRestMs,
    begin: async ({ redis, deadPort }) => {
      await redis.call(['REPLICAOF', '127.0.0.1', deadPort])
      return () => insist(redis, ['REPLICAOF', 'NO', 'ONE'])
    },
  },
  {
    name: 'memory',
    targets: onRedis,
    restMs: redisRestMs,
    begin: async ({ redis }) => {
      const used = Number(/used_memory:(\d+)/.exec(String(await redis.call(['INFO', 'memory'])))?.[1])
      await redis.call(['CONFIG', 'SET', 'maxmemory', Math.floor(used * 0.95)])
      return () => insist(redis, ['CONFIG', 'SET', 'maxmemory', 0])
    },
  },
  atOnce('script-flush', ['SCRIPT', 'FLUSH']),
  atOnce('library-deleted', ['FUNCTION', 'DELETE', 'holdfast']),
  atOnce('client-kill', ['CLIENT', 'KILL', 'TYPE', 'normal']),
]

/** @param {'hub' | 'node' | 'producer'} role @returns {Fault} */
function killed(role) {
  return {
    name: `kill-${role}`,
    targets: each(role),
    longestMs: 0,
    restMs: 2000,
    begin: async (world, _, { target }) => {
      const keeper = world.find(target)
      keeper.kill('SIGKILL')
      return () => keeper.whenUp(upAgainMs)
    },
  }
}

/** @param {'hub' | 'node'} role @param {{ leastMs: number, longestMs: number }} times @returns {Fault} */
function frozen(role, times) {
  return {
    name: `stop-${role}`,
    targets: each(role),
    ...times,
    begin: async (world, _, { target }) => {
      const keeper = world.find(target)
      const { pid } = keeper
      keeper.kill('SIGSTOP')
      return () => {
        if (keeper.pid === pid) keeper.kill('SIGCONT')
      }
    },
  }
}

/** @param {string} name @param {string[]} command @returns {Fault} */
function atOnce(name, command) {
  return {
    name,
    longestMs: 0,
    begin: async ({ redis }) => {
      await redis.call(command)
      return () => {}
    },
  }
}

/** Repeats a command until the server takes it. @param {World['redis']} redis @param {(string | number)[]} command */
async function insist(redis, command) {
  await untilDone(() => redis.call(command), commandMs)
}

/** What can be done to processes, whatever the record is on. */
const everywhere =
  /^(kill|stop)-(hub|node|producer)$|^(kill|stop)-point$|^(client-kill|script-flush|library-deleted)$/

/** Whether a fault is made where nobody names it. @param {Fault} fault @param {boolean} onCluster */
export function isUsual({ name, loses, doubts, cluster }, onCluster) {
  if (loses || doubts) return false
  return onCluster ? cluster === true || everywhere.test(name) : cluster !== true
}

/** Every kind of fault by its name. @returns {Promise<Map<string, Fault>>} */
export async function loadFaults() {
  const folder = new URL('faults/', import.meta.url)
  /** @type {Fault[]} */
  const found = []
  for (const file of filesOf(folder)) {
    const { fault } = await import(new URL(file, folder).href)
    if (fault !== undefined) found.push(fault)
  }
  return new Map([...ownFaults, ...found].map((fault) => [fault.name, fault]))
}

/** @param {URL} folder */
function filesOf(folder) {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith('.mjs'))
      .sort()
  } catch {
    return []
  }
}

/**
 * Draws what happens in so many seconds. A fault that is there several times is drawn as much more often.
 * @param {{ seed: string, seconds: number, faults: readonly Fault[], targets: Targets }} given @returns {Planned[]}
 */
export function planFaults({ seed, seconds, faults, targets }) {
  const random = createRandom(`${seed} schedule`)
  const endMs = seconds * 1000
  /** When a target may be hit again. @type {Map<string, number>} */
  const freeAt = new Map()
  /** @type {Planned[]} */
  const planned = []
  for (let atMs = firstAtMs; ; ) {
    atMs += Math.ceil(random.exponential(meanGapMs))
    if (atMs >= endMs) return planned
    const open = faults
      .map((fault) => ({
        fault,
        names: (fault.targets?.(targets) ?? [fault.name]).filter((name) => isFree(name, atMs)),
      }))
      .filter(({ names }) => names.length > 0)
    if (open.length === 0) continue
    const { fault, names } = random.weighted(open, ({ fault: { weight = 1 } }) => weight)
    const target = random.pick(names)
    const { leastMs = 0, longestMs = 2000 } = fault
    const forMs = Math.min(random.int(leastMs, longestMs), Math.floor(endMs - atMs))
    freeAt.set(target, atMs + forMs + (fault.restMs ?? restMs))
    planned.push({ id: planned.length + 1, name: fault.name, target, atMs, forMs })
  }

  /** @param {string} name @param {number} atMs */
  function isFree(name, atMs) {
    return (freeAt.get(name) ?? 0) <= atMs
  }
}
