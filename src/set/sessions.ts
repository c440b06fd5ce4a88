import type { EffectView } from '../contract/effect-views.js'
import { HoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import { partsOfId } from '../contract/hub-set.js'
import type { SessionView } from '../contract/session-views.js'
import type { Members } from './members.js'
import { pageOfAll } from './pages.js'
import { effectOf, sessionOf, sessionReplyOf } from './qualified.js'

type SessionCalls = Pick<HubCalls, 'openSession' | 'closeSession' | 'rehome' | 'session' | 'sessionPage'>
type EffectPart = Pick<
  HubCalls,
  'claimEffect' | 'takeOverEffect' | 'settleEffect' | 'effect' | 'effectPage' | 'resolveEffect'
>

/** Sessions are per hub: every call is one call of the hub that the id names. */
export function sessionCalls(members: Members): SessionCalls {
  return {
    openSession: async (given, opening, actor) => {
      const { hub, calls, id } = members.ofId(given)
      const { parent } = opening
      const own = parent === undefined ? opening : { ...opening, parent: ownParent(members, hub, parent) }
      return sessionReplyOf(hub, await calls.openSession(id, own, actor))
    },
    closeSession: async (given, closing, actor) => {
      const { hub, calls, id } = members.ofId(given)
      return sessionReplyOf(hub, await calls.closeSession(id, closing, actor))
    },
    rehome: async (given, host, options) => {
      const { hub, calls, id } = members.ofId(given)
      return sessionReplyOf(hub, await calls.rehome(id, host, options))
    },
    session: async (given) => {
      const { hub, calls, id } = members.ofId(given)
      return sessionOf(hub, await calls.session(id))
    },
    sessionPage: (page) =>
      pageOfAll<SessionView>(members, page, async ({ hub, calls }, own) => {
        const { entries, cursor } = await calls.sessionPage(own)
        return { entries: entries.map((view) => sessionOf(hub, view)), cursor }
      }),
  }
}

/** @throws INVALID_ARGUMENT for a parent on another hub, which could not be moved together with it */
function ownParent(members: Members, hub: string, given: string): string {
  const { hub: its, id } = partsOfId(given, members.names)
  if (its === hub) return id
  throw new HoldfastError(
    'INVALID_ARGUMENT',
    `the parent ${given} is a session of hub ${its}, not of ${hub}`,
    {
      current: given,
      next: 'a session and its parent are on one hub',
    },
  )
}

/** Effects are per hub: every call is one call of the hub that the id names. */
export function effectCalls(members: Members): EffectPart {
  return {
    claimEffect: async (given, claim) => {
      const { calls, id } = members.ofId(given)
      return calls.claimEffect(id, claim)
    },
    takeOverEffect: async (given, takeOver) => {
      const { calls, id } = members.ofId(given)
      return calls.takeOverEffect(id, takeOver)
    },
    settleEffect: async (given, settlement) => {
      const { calls, id } = members.ofId(given)
      return calls.settleEffect(id, settlement)
    },
    effect: async (given) => {
      const { hub, calls, id } = members.ofId(given)
      return effectOf(hub, await calls.effect(id))
    },
    effectPage: (options = {}) =>
      pageOfAll<EffectView>(members, options, async ({ hub, calls }, page) => {
        const { entries, cursor } = await calls.effectPage({ ...options, ...page })
        return { entries: entries.map((view) => effectOf(hub, view)), cursor }
      }),
    resolveEffect: async (given, resolution, actor) => {
      const { calls, id } = members.ofId(given)
      return calls.resolveEffect(id, resolution, actor)
    },
  }
}
