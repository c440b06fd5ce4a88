// @ts-check
// Makes the faults of a schedule at their times, and tells the history of each.
import { setTimeout as sleep } from 'node:timers/promises'
import { Misbehaviour, restMs } from './schedule.mjs'
import { within } from './waiting.mjs'

/** @typedef {import('./world.mjs').World} World */
/** @typedef {import('./schedule.mjs').Planned} Planned */
/** @typedef {import('./schedule.mjs').Fault} Fault */

const beginWithinMs = 15_000
const endWithinMs = 30_000
/** A fault waits so long for its target to be free. */
const lateAtMostMs = 1500
const askEveryMs = 50

/**
 * Resolves when the last of them has begun.
 * @param {World} world @param {readonly Planned[]} plan @param {readonly Fault[]} faults
 */
export async function runPlan(world, plan, faults) {
  const known = new Map(faults.map((fault) => [fault.name, fault]))
  const startedAt = performance.now()
  const made = new Map(faults.map(({ name }) => [name, 0]))
  /** @type {Set<string>} */
  const busy = new Set()
  /** @type {Promise<void>[]} */
  const running = []
  for (const planned of plan) {
    await sleep(Math.max(0, planned.atMs - (performance.now() - startedAt)))
    const fault = known.get(planned.name)
    if (fault !== undefined) running.push(makeOne(world, fault, planned, { busy, made }))
  }
  return {
    /** Resolves when every one of them is over. */
    ended: async () => void (await Promise.all(running)),
    counts: () => Object.fromEntries(made),
  }
}

/**
 * One that hits what another still holds waits a little, and is left out then: the first took longer to end than was drawn.
 * @param {World} world @param {Fault} fault @param {Planned} planned
 * @param {{ busy: Set<string>, made: Map<string, number> }} state
 */
async function makeOne(world, fault, planned, { busy, made }) {
  const { id, name, target, forMs } = planned
  const about = { kind: 'fault', id, name, target: targetOf(world, target) }
  const latestAt = performance.now() + lateAtMostMs
  while (busy.has(target)) {
    if (performance.now() > latestAt) return world.history.write({ ...about, kind: 'skip' })
    await sleep(askEveryMs)
  }
  busy.add(target)
  world.history.write({ ...about, type: 'begin', forMs })
  try {
    const random = world.random.fork(`fault ${id}`)
    const end = await within(fault.begin(world, random, planned), beginWithinMs, `${name} begins`)
    made.set(name, (made.get(name) ?? 0) + 1)
    await sleep(forMs)
    await within(Promise.resolve(end()), endWithinMs, `${name} ends`)
    world.history.write({ ...about, type: 'end' })
  } catch (error) {
    // Its target may be down already; what was done of it is over all the same, or the run will tell.
    world.history.write({ ...about, type: 'end', error: String(error) })
    if (error instanceof Misbehaviour) world.misbehaviours.push(`${name}: ${error.message}`)
  }
  // Its rest counts from when it works again: on a busy machine that is later than was drawn, and without it a
  // process that is slow to start would be hit again before it did anything.
  setTimeout(() => busy.delete(target), fault.restMs ?? restMs).unref()
}

/** @param {World} world @param {string} target */
function targetOf(world, target) {
  if (target === 'redis') return world.redis.target()
  const [role = '', name = ''] = target.split(' ')
  return name === '' ? { role, name: role, pid: 0 } : world.find(target).target()
}
