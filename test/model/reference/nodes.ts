import type { ErrorCode } from '../../../src/contract/errors.js'
import type { NodeIdentity } from '../../../src/contract/steps.js'
import type { ModelHub, ModelNode } from './state.js'

export function nodeOf(hub: ModelHub, who: NodeIdentity): ModelNode | undefined {
  return hub.nodes[`${who.host}/${who.node}`]
}

/** Why this process may not work for its host; undefined when it may. */
export function gate(hub: ModelHub, who: NodeIdentity): ErrorCode | undefined {
  return hub.hosts[who.host]?.retired === true ? 'HOST_RETIRED' : processGate(hub, who)
}

/** Why this is not the present process of its node; undefined when it is. */
function processGate(hub: ModelHub, who: NodeIdentity): ErrorCode | undefined {
  const node = nodeOf(hub, who)
  if (node === undefined || who.incarnation > node.incarnation) return 'NOT_JOINED'
  if (who.incarnation < node.incarnation) return 'SUPERSEDED'
  return node.left ? 'LEFT' : undefined
}

/** Reports are taken from every process of a node that ever joined. */
export function reportGate(hub: ModelHub, who: NodeIdentity): ErrorCode | undefined {
  const node = nodeOf(hub, who)
  return node === undefined || who.incarnation > node.incarnation ? 'NOT_JOINED' : undefined
}

export function join(hub: ModelHub, who: NodeIdentity, instance: string): ErrorCode | undefined {
  const known = nodeOf(hub, who)
  if (known !== undefined) {
    if (who.incarnation < known.incarnation) return 'SUPERSEDED'
    if (who.incarnation === known.incarnation) {
      if (instance !== known.instance) return 'MIRROR_CLONED'
      if (known.left) return 'LEFT'
      known.stale = false
      return undefined
    }
  }
  hub.hosts[who.host] ??= { retired: false }
  hub.nodes[`${who.host}/${who.node}`] = {
    host: who.host,
    id: who.node,
    incarnation: who.incarnation,
    instance,
    left: false,
    stale: false,
    request: 0,
    answer: [],
    leftCleanly: known === undefined ? [] : known.leftCleanly,
    ...(known === undefined ? {} : { resume: true }),
  }
  return undefined
}

/** Taken on a retired host too: what was begun there may still run. */
export function heartbeat(hub: ModelHub, who: NodeIdentity): ErrorCode | undefined {
  const code = processGate(hub, who)
  const node = nodeOf(hub, who)
  if (code === undefined && node !== undefined) node.stale = false
  return code
}

export function leave(hub: ModelHub, who: NodeIdentity): ErrorCode | undefined {
  const node = nodeOf(hub, who)
  if (node?.incarnation === who.incarnation && node.left) return undefined
  const code = gate(hub, who)
  if (code === undefined && node !== undefined) {
    node.left = true
    node.leftCleanly = [...node.leftCleanly, node.incarnation]
  }
  return code
}
