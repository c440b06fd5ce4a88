import type { FenceReply, FenceView, LiftReply } from '../contract/host-views.js'
import type { FenceOptions, HubCalls } from '../contract/hub.js'
import { qualifiedId } from '../contract/hub-set.js'
import { askAll, type Member, type Members, onAll, type Said } from './members.js'

type Kind = 'pause' | 'hold' | 'block'
type FenceCalls = Pick<HubCalls, 'fences' | Kind | 'lift' | 'drain'>

/** Fences: one of a conversation or a session on its hub, a wide one on every hub. */
export function fenceCalls(members: Members): FenceCalls {
  const set = (kind: Kind) => async (scope: string, options: FenceOptions) => {
    const narrow = narrowOf(members, scope)
    if (narrow === undefined) return setWide(members, `${kind}:${scope}`, (hub) => hub[kind](scope, options))
    return narrowReply(narrow, kind, scope, await narrow.calls[kind](narrow.scope, options))
  }
  return {
    fences: async () => fencesOf(members, await askAll(members, ({ calls }) => calls.fences())),
    pause: set('pause'),
    hold: set('hold'),
    block: set('block'),
    lift: async (kind, scope, actor) => {
      const session = scope.startsWith(sessionWord) ? narrowOf(members, scope) : undefined
      if (session !== undefined) {
        return narrowReply(session, kind, scope, await session.calls.lift(kind, session.scope, actor))
      }
      // Also that of a conversation, which may stand where the conversation lived before the set grew.
      const said = await onAll(members, {
        what: `the fence ${kind}:${scope} is lifted`,
        absent: 'FENCE_NOT_FOUND',
        act: ({ calls }) => calls.lift(kind, scope, actor),
      })
      return liftedOf(said)
    },
    drain: (host, actor) => setWide(members, `pause:host:${host}`, (hub) => hub.drain(host, actor)),
  }
}

const sessionWord = 'session:'
const conversationWord = 'conversation:'

interface Narrow extends Member {
  /** As its hub takes it. */
  readonly scope: string
}

/** The one hub that a scope is on; undefined for a wide one, and for what no hub takes. @throws INVALID_ARGUMENT */
function narrowOf(members: Members, scope: string): Narrow | undefined {
  if (scope.startsWith(sessionWord)) {
    const { id, ...member } = members.ofId(scope.slice(sessionWord.length))
    return { ...member, scope: `${sessionWord}${id}` }
  }
  if (!scope.startsWith(conversationWord)) return undefined
  return { ...members.ofConversation(scope.slice(conversationWord.length)), scope }
}

function narrowReply<Reply extends { readonly logId: string }>(
  { hub }: Narrow,
  kind: Kind,
  scope: string,
  reply: Reply,
): Reply {
  return { ...reply, fence: `${kind}:${scope}`, logId: qualifiedId(hub, reply.logId) }
}

async function setWide(
  members: Members,
  fence: string,
  set: (hub: HubCalls) => Promise<FenceReply>,
): Promise<FenceReply> {
  const said = await onAll(members, { what: `the fence ${fence} stands`, act: ({ calls }) => set(calls) })
  const replaced = said.find(({ value }) => value.replaced !== undefined)?.value.replaced
  return { fence, logId: logIdsOf(said), ...(replaced === undefined ? {} : { replaced }) }
}

function liftedOf(said: readonly Said<LiftReply>[]): LiftReply {
  const [{ value: first }] = said as [Said<LiftReply>, ...Said<LiftReply>[]]
  return {
    ...first,
    hostsRung: said.reduce((total, { value }) => total + value.hostsRung, 0),
    left: said.reduce((total, { value }) => total + value.left, 0),
    logId: logIdsOf(said),
  }
}

/** An entry of each hub's log. */
function logIdsOf(said: readonly Said<{ readonly logId: string }>[]): string {
  return said.map(({ hub, value }) => qualifiedId(hub, value.logId)).join(',')
}

/** Each fence once, with the hubs where it should stand and does not. */
function fencesOf(members: Members, said: readonly Said<readonly FenceView[]>[]): FenceView[] {
  const found = new Map<string, { readonly view: FenceView; readonly hubs: Set<string> }>()
  for (const { hub, value } of said) {
    for (const view of value) {
      const fence = nameOf(hub, view)
      const known = found.get(fence) ?? { view: { ...view, fence }, hubs: new Set() }
      known.hubs.add(hub)
      found.set(fence, known)
    }
  }
  return [...found.values()]
    .map(({ view, hubs }) => {
      const missing = placesOf(members, view).filter((hub) => !hubs.has(hub))
      return missing.length === 0 ? view : { ...view, missing }
    })
    .sort((one, other) => (one.fence < other.fence ? -1 : 1))
}

const scopePattern = /^((?:pause|hold|block):session:)(.+)$/s

/** What a set calls a fence of one hub: with the hub before a session, and before a field that no rule reads. */
function nameOf(hub: string, { fence, known }: FenceView): string {
  if (!known) return qualifiedId(hub, fence)
  const [, head, session] = scopePattern.exec(fence) ?? []
  return head === undefined || session === undefined ? fence : `${head}${qualifiedId(hub, session)}`
}

/** Where a fence has to stand for all that it covers. */
function placesOf(members: Members, { fence, known }: FenceView): readonly string[] {
  if (!known) return []
  const scope = fence.slice(fence.indexOf(':') + 1)
  if (scope.startsWith(sessionWord)) return []
  if (!scope.startsWith(conversationWord)) return members.names
  return [members.ofConversation(scope.slice(conversationWord.length)).hub]
}
