import { type ErrorCode, HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import { hubOf, naming, ofHub, partsOfId } from '../contract/hub-set.js'

/** A hub of the set, by its name. */
export interface Member {
  readonly hub: string
  readonly calls: HubCalls
}

/** The hubs of a set of several. */
export interface Members {
  readonly names: readonly string[]
  readonly all: readonly Member[]
  /** @throws INVALID_ARGUMENT for a name that is none of the set */
  named(hub: string): Member
  /** The hub that a conversation lives on. */
  ofConversation(conversation: string): Member
  /** The hub of an id, and what it calls it. @throws INVALID_ARGUMENT */
  ofId(id: string): Member & { readonly id: string }
}

export function membersOf(hubs: ReadonlyMap<string, HubCalls>): Members {
  const names = [...hubs.keys()]
  const all = [...hubs].map(([hub, calls]) => ({ hub, calls }))
  function named(hub: string): Member {
    const found = all.find((each) => each.hub === hub)
    if (found !== undefined) return found
    throw new HoldfastError('INVALID_ARGUMENT', `hub ${JSON.stringify(hub)} is none of the set`, {
      current: hub,
      next: `the set is ${names.join(', ')}`,
    })
  }
  return {
    names,
    all,
    named,
    ofConversation: (conversation) => named(hubOf(conversation, names)),
    ofId: (given) => {
      const { hub, id } = partsOfId(given, names)
      return { ...named(hub), id }
    },
  }
}

/** The same set, of which this hub alone is asked. */
export function only(members: Members, { hub, calls }: Member): Members {
  return { ...members, names: [hub], all: [{ hub, calls }] }
}

/** What one hub answered. */
export interface Said<Value> {
  readonly hub: string
  readonly value: Value
}

/** Asks every hub at once; where one fails, the error says which. */
export async function askAll<Value>(
  { all }: Members,
  ask: (member: Member) => Promise<Value>,
): Promise<Said<Value>[]> {
  return await Promise.all(
    all.map(async (member) => ({ hub: member.hub, value: await naming(member.hub, () => ask(member)) })),
  )
}

/** A change that belongs on every hub. */
export interface WideAct<Value> {
  /** What is so where it took effect: `the fence pause:hub stands`. */
  readonly what: string
  /** The code by which a hub says that there was nothing to change; harmless as long as there was on another. */
  readonly absent?: ErrorCode
  act(member: Member): Promise<Value>
}

/**
 * Makes a change on every hub at once; answers what those said that made it.
 * @throws SET_INCOMPLETE, naming the hubs, where it took effect on some; what all said where it did on none
 */
export async function onAll<Value>(members: Members, wide: WideAct<Value>): Promise<Said<Value>[]> {
  const tries = await Promise.all(members.all.map((member) => tried(member, wide)))
  const done = tries.flatMap(({ hub, outcome }) => (outcome.ok ? [{ hub, value: outcome.value }] : []))
  const refused = tries.flatMap(({ hub, outcome }) => (outcome.ok ? [] : [{ hub, error: outcome.error }]))
  const failed = refused.filter(({ error }) => error.code !== wide.absent)
  const [first] = failed.length === 0 ? refused : failed
  if (first === undefined || (failed.length === 0 && done.length > 0)) return done
  const isSame = refused.every(({ error }) => error.code === first.error.code)
  if (done.length === 0 && isSame) throw ofHub(first.hub, first.error)
  const absent = refused.filter((each) => !failed.includes(each)).map(({ hub }) => hub)
  const took = done.map(({ hub }) => hub)
  const parts = [
    `${wide.what} on ${took.length === 0 ? 'no hub' : took.join(', ')}`,
    ...(absent.length === 0 ? [] : [`nothing to do on ${absent.join(', ')} (${wide.absent})`]),
    `not on ${failed.map(({ hub, error }) => `${hub} (${error.message})`).join(', ')}`,
  ]
  throw new HoldfastError('SET_INCOMPLETE', parts.join('; '), {
    cause: first.error,
    current: { done: took, absent, missing: failed.map(({ hub }) => hub) },
  })
}

type Try<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: HoldfastError }

async function tried<Value>(
  member: Member,
  { act }: WideAct<Value>,
): Promise<{ hub: string; outcome: Try<Value> }> {
  try {
    return { hub: member.hub, outcome: { ok: true, value: await act(member) } }
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    return { hub: member.hub, outcome: { ok: false, error } }
  }
}
