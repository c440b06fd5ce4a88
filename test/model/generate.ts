import fc from 'fast-check'
import { outcomeKinds } from '../../src/contract/outcomes.js'
import type { NodeIdentity } from '../../src/contract/steps.js'
import {
  type FenceKind,
  isExecuting,
  isFinished,
  isIdle,
  type ModelDelivery,
  type ModelHub,
} from './reference/state.js'
import type { ModelReport } from './reference/steps.js'
import { acceptCall, type World, type WorldCall } from './world.js'

/**
 * One step of a sequence before it is known what it meets: a kind of step, and dice that choose among what
 * the model shows when its turn comes. So a shortened sequence still makes sense.
 */
export interface Plan {
  readonly kind: Kind
  readonly dice: readonly [number, number, number, number]
}

const weights = {
  accept: 8,
  fan_out: 2,
  join: 4,
  heartbeat: 2,
  leave: 2,
  go_stale: 3,
  claim: 18,
  mirror: 8,
  ack: 8,
  begin: 12,
  report: 16,
  refuse: 5,
  fence: 5,
  lift: 4,
  by_hand: 3,
  release: 4,
  reject: 2,
  hold_delivery: 3,
  cancel: 2,
  pass_deadline: 2,
  retire: 1,
  again: 9,
} as const
type Kind = keyof typeof weights

const die = fc.nat(0xffff)

/** Sequences of plans. */
export const plans: fc.Arbitrary<Plan[]> = fc.array(
  fc.noBias(
    fc.record({
      kind: fc.oneof(
        ...Object.entries(weights).map(([kind, weight]) => ({
          arbitrary: fc.constant(kind as Kind),
          weight,
        })),
      ),
      dice: fc.tuple(die, die, die, die),
    }),
  ),
  { minLength: 40, maxLength: 90, size: 'max' },
)

const hosts = ['a', 'b'] as const
const nodes = ['n1', 'n2'] as const
/** One of them twice as often, so that lanes fill. */
const conversations = ['c1', 'c1', 'c2'] as const
const recipients = ['host:a', 'host:b', 'session:s1', 'session:s2'] as const
const scopes = [
  'hub',
  'host:a',
  'host:b',
  'conversation:c1',
  'conversation:c2',
  'session:s1',
  'session:s2',
] as const
const fencesAtMost = 3
const openAtMost = 10
const nowhere = '1-000000.1'

function pick<Value>(from: readonly Value[], die: number): Value | undefined {
  return from[die % Math.max(1, from.length)]
}

/** True once in `of` throws, and never for 0, so that shortened sequences do the usual. */
function oneIn(of: number, die: number): boolean {
  return Math.floor(die / 64) % of === of - 1
}

/** Every sequence begins with a node on each host, and a message. */
export const beginning: readonly WorldCall[] = [
  ...hosts.map((host) => ({
    verb: 'join' as const,
    who: { host, node: 'n1', incarnation: 1 },
    instance: 'i1',
  })),
  acceptCall({
    key: 'k0',
    conversation: 'c1',
    recipients: ['host:a', 'session:s2', 'session:s1'],
    payload: 'payload',
    deliverLate: false,
    executeLate: false,
  }),
]

/** What a step is meant to be done to. */
const meantFor: Partial<Record<Kind, (delivery: ModelDelivery) => boolean>> = {
  mirror: ({ state }) => state === 'claimed',
  ack: ({ state }) => state === 'mirrored',
  begin: isIdle,
  report: isExecuting,
  release: ({ state }) => state === 'held',
  reject: ({ state }) => state === 'held',
  refuse: (delivery) => delivery.state === 'claimed' || delivery.state === 'mirrored' || isIdle(delivery),
}

/** Steps that bring deliveries on, from the far end. */
const onward = ['begin', 'ack', 'mirror'] as const

/** The kind that is planned, or where nothing is there for it, mostly one that brings something on. */
function kindFor(hub: ModelHub, { kind, dice }: Plan): Kind {
  const all = Object.values(hub.deliveries)
  const fits = meantFor[kind]
  if (fits === undefined || all.some(fits) || oneIn(6, dice[1])) return kind
  const next = onward.find((each) => all.some(meantFor[each] ?? (() => false)))
  if (next !== undefined) return next
  return all.some(({ state }) => state === 'queued') ? 'claim' : 'accept'
}

/** The call that a plan means now; undefined when there is nothing to do it to. */
export function callOf(world: World, plan: Plan): WorldCall | undefined {
  const { dice } = plan
  const [first, second, third, fourth] = dice
  const hub = world.model
  const kind = kindFor(hub, plan)
  switch (kind) {
    case 'accept':
      return acceptOf(world, dice)
    case 'fan_out': {
      const owing = Object.values(hub.messages).filter(({ made, recipients }) => made < recipients.length)
      const among = oneIn(5, second) ? Object.values(hub.messages) : owing
      const message = pick(among, first)?.id ?? '1-000000'
      return { verb: 'fan_out', message, chunk: 1 + (third % 2) }
    }
    case 'join':
      return joinOf(hub, dice)
    case 'heartbeat':
    case 'leave':
      return { verb: kind, who: someone(hub, first, second, third) }
    case 'go_stale': {
      const node = pick(Object.values(hub.nodes), first)
      return node === undefined ? undefined : { verb: 'go_stale', host: node.host, node: node.id }
    }
    case 'claim': {
      const who = someone(hub, first, second, third)
      const last = hub.nodes[`${who.host}/${who.node}`]?.request ?? 0
      const count = [1, 2, 3, 100][fourth % 4] ?? 1
      return {
        verb: 'claim',
        who,
        request: Math.max(1, oneIn(12, fourth) ? last - 1 : last + 1),
        count,
        looks: !oneIn(3, third),
        openIfEmpty: oneIn(4, second),
      }
    }
    case 'mirror':
    case 'ack':
      return oneIn(2, third) ? takeOf(world, dice) : stepsOf(hub, kind, dice)
    case 'begin':
      return beginOf(world, dice)
    case 'refuse': {
      const target = aim(hub, dice, meantFor.refuse ?? (() => true))
      const verdict = fourth % 2 === 0 ? 'failed' : 'unknown'
      const reason = oneIn(3, fourth) ? 'payload_corrupt' : verdict === 'failed' ? 'too_big' : 'copy_in_doubt'
      return { verb: 'refuse', who: target.who, items: [{ ...target.item, verdict, reason }] }
    }
    case 'report':
      return reportOf(world, dice)
    case 'fence': {
      const field = pick(Object.keys(hub.fences), first)
      if (field !== undefined && Object.keys(hub.fences).length >= fencesAtMost) return liftOf(field)
      return { verb: kindOf(second), scope: pick(scopes, third) ?? 'hub' }
    }
    case 'lift': {
      const field = pick(Object.keys(hub.fences), first)
      if (field === undefined || oneIn(9, second)) {
        return { verb: 'lift', kind: kindOf(second), scope: pick(scopes, third) ?? 'hub' }
      }
      return liftOf(field)
    }
    case 'by_hand': {
      const field = pick(Object.keys(hub.fences), first)
      return field === undefined
        ? undefined
        : { verb: second % 2 === 0 ? 'expire_fence' : 'delete_fence', field }
    }
    case 'release':
    case 'reject':
      return { verb: kind, id: anyDelivery(hub, first, second, ({ state }) => state === 'held') }
    case 'hold_delivery':
      return { verb: kind, id: anyDelivery(hub, first, second), reason: 'looked at' }
    case 'cancel':
      return { verb: kind, id: anyDelivery(hub, first, second) }
    case 'pass_deadline': {
      const delivery = pick(Object.values(hub.deliveries), first)
      if (delivery === undefined) return undefined
      return { verb: kind, id: delivery.id, which: second % 2 === 0 ? 'deliver_by' : 'execute_by' }
    }
    case 'retire':
      // Seldom: a retired host does nothing any more.
      if (!oneIn(2, first)) return undefined
      return { verb: 'retire', host: oneIn(8, second) ? 'never-seen' : (pick(hosts, second) ?? 'a') }
    case 'again': {
      // The latest more often: what was just sent is what is sent twice.
      const { remembered } = world
      const back = oneIn(2, second) ? first % Math.min(6, remembered.length) : first % remembered.length
      return remembered.at(-1 - back)
    }
  }
}

function acceptOf(world: World, [first, second, third, fourth]: Plan['dice']): WorldCall {
  const keys = Object.keys(world.model.keys)
  const old = oneIn(10, first) ? pick(keys, second) : undefined
  const open = Object.values(world.model.deliveries).filter(
    (each) => !isFinished(each) && each.state !== 'failed',
  )
  if (old === undefined && open.length >= openAtMost) {
    return { verb: 'heartbeat', who: someone(world.model, first, second, third) }
  }
  const to = recipients.filter((_, at) => ((third % 15) + 1) & (1 << at))
  return acceptCall({
    key: old ?? world.mint('k'),
    conversation: pick(conversations, first) ?? 'c1',
    recipients: oneIn(60, fourth) ? ['session:never-seen'] : to,
    payload: `payload ${fourth % 3}`,
    deliverLate: oneIn(15, second),
    executeLate: oneIn(15, third),
  })
}

function joinOf(hub: ModelHub, [first, second, third]: Plan['dice']): WorldCall {
  const host = pick(hosts, first) ?? 'a'
  const node = pick(nodes, second) ?? 'n1'
  const last = hub.nodes[`${host}/${node}`]?.incarnation ?? 0
  // Mostly a restart; else the same again, a clone, or one that was superseded.
  const [incarnation, instance] = (
    [
      [last + 1, `i${last + 1}`],
      [last + 1, `i${last + 1}`],
      [last + 1, `i${last + 1}`],
      [last, `i${last}`],
      [last, 'clone'],
      [last - 1, `i${last - 1}`],
    ] as const
  )[third % 6] ?? [last + 1, '']
  return { verb: 'join', who: { host, node, incarnation: Math.max(1, incarnation) }, instance }
}

/** A process: mostly a present one. */
function someone(hub: ModelHub, first: number, second: number, third: number): NodeIdentity {
  const all = Object.values(hub.nodes)
  const present = oneIn(8, third)
    ? all
    : all.filter(({ left, host }) => !left && hub.hosts[host]?.retired !== true)
  const node = pick(present, first)
  if (node !== undefined && !oneIn(9, second)) {
    return { host: node.host, node: node.id, incarnation: node.incarnation }
  }
  const host = pick(hosts, second) ?? 'a'
  const id = pick(nodes, third) ?? 'n1'
  const last = hub.nodes[`${host}/${id}`]?.incarnation ?? 0
  return { host, node: id, incarnation: Math.max(1, last + ([0, -1, 1, 0][third % 4] ?? 0)) }
}

/** A delivery to step on: mostly one that `fits`, by its owner and under its epoch. */
function aim(
  hub: ModelHub,
  [first, second, third]: Plan['dice'],
  fits: (delivery: ModelDelivery) => boolean,
) {
  const all = Object.values(hub.deliveries)
  const fitting = all.filter(fits)
  const delivery = (oneIn(4, second) ? undefined : pick(fitting, first)) ?? pick(all, first)
  const stray = someone(hub, second, third, first)
  if (delivery === undefined || oneIn(100, third)) return { who: stray, item: { id: nowhere, epoch: 1 } }
  const { id, host, owner, incarnation } = delivery
  const who =
    owner === undefined || oneIn(8, third) ? stray : { host, node: owner, incarnation: incarnation ?? 1 }
  const epoch = oneIn(8, first) ? Math.max(0, delivery.epoch - 1) : delivery.epoch
  return { who, item: { id, epoch } }
}

function stepsOf(hub: ModelHub, verb: 'mirror' | 'ack', dice: Plan['dice']): WorldCall {
  const from = verb === 'mirror' ? 'claimed' : 'mirrored'
  const { who, items } = aimAtSeveral(hub, dice, ({ state }) => state === from)
  return { verb, who, items }
}

/** A node mostly sends all that it has in one call. */
function aimAtSeveral(hub: ModelHub, dice: Plan['dice'], fits: (delivery: ModelDelivery) => boolean) {
  const { who, item } = aim(hub, dice, fits)
  const others = Object.values(hub.deliveries).filter(
    (each) =>
      each.id !== item.id &&
      fits(each) &&
      each.host === who.host &&
      each.owner === who.node &&
      dice[3] % 3 > 0,
  )
  return { who, items: [item, ...others.map(({ id, epoch }) => ({ id, epoch }))] }
}

function takeOf(world: World, dice: Plan['dice']): WorldCall {
  const { who, items } = aimAtSeveral(
    world.model,
    dice,
    (delivery) => delivery.state === 'claimed' || delivery.state === 'mirrored' || isIdle(delivery),
  )
  const granted = items.map((item, at) =>
    (dice[0] + at) % 3 === 2 ? item : { ...item, grant: grantFor(world, item.id, dice[3]) },
  )
  return { verb: 'take', who, items: granted }
}

/** A new one; seldom one that was used before. */
function grantFor(world: World, id: string, die: number): string {
  const used = world.model.deliveries[id]?.attempts.map(({ grant }) => grant) ?? []
  return (oneIn(6, die) ? pick(used, die) : undefined) ?? world.mint('g')
}

function beginOf(world: World, dice: Plan['dice']): WorldCall {
  const { who, item } = aim(world.model, dice, isIdle)
  return { verb: 'begin', who, items: [{ ...item, grant: grantFor(world, item.id, dice[3]) }] }
}

function reportOf(world: World, dice: Plan['dice']): WorldCall {
  const [first, second, third, fourth] = dice
  const { deliveries } = world.model
  const all = Object.values(deliveries)
  const open = all.filter(isExecuting)
  const begun = all.filter(({ attempts }) => attempts.length > 0)
  const delivery =
    (oneIn(4, second) ? undefined : pick(open, first)) ?? pick(oneIn(2, second) ? begun : all, first)
  const attempt = delivery === undefined || oneIn(6, third) ? delivery?.attempts[0] : delivery.attempts.at(-1)
  const number = delivery === undefined || attempt === undefined ? 0 : delivery.attempts.indexOf(attempt) + 1
  const who = reporter(world.model, attempt?.node, attempt?.incarnation, dice)
  const kind = outcomeKinds[(fourth % 6) % 4 === 3 ? 3 : fourth % 6 > 3 ? 2 : fourth % 3] ?? 'result'
  const grant = attempt === undefined || oneIn(12, fourth) ? world.mint('g') : attempt.grant
  const keys = [...Object.keys(attempt?.unknownKeys ?? {}), ...Object.keys(attempt?.lateKeys ?? {})]
  if (attempt?.settledBy !== undefined) keys.push(attempt.settledBy.key)
  const report: ModelReport = {
    id: idOf(delivery?.id, number, dice),
    grant,
    key: (oneIn(3, third) ? pick(keys, fourth) : undefined) ?? world.mint('r'),
    kind,
    content: `"${second % 2}"`,
  }
  return { verb: 'report', who, items: [report] }
}

/** By attempt or by delivery; seldom an attempt that is none. */
function idOf(delivery: string | undefined, number: number, [, second, third]: Plan['dice']): string {
  if (delivery === undefined || oneIn(60, third)) return nowhere
  if (oneIn(20, third)) return `${delivery}/${number + 5}`
  return number === 0 || oneIn(4, second) ? delivery : `${delivery}/${number}`
}

/** Whose grant it was, as it was then or is now; seldom someone else. */
function reporter(
  hub: ModelHub,
  node: string | undefined,
  incarnation: number | undefined,
  [first, second, third, fourth]: Plan['dice'],
): NodeIdentity {
  const now = node === undefined ? undefined : hub.nodes[node]
  if (now === undefined || oneIn(12, third)) return someone(hub, third, first, second)
  const later = oneIn(3, fourth)
  return { host: now.host, node: now.id, incarnation: later ? now.incarnation : (incarnation ?? 1) }
}

function kindOf(die: number): FenceKind {
  return (['pause', 'pause', 'pause', 'pause', 'hold', 'hold', 'block'] as const)[die % 7] ?? 'pause'
}

function liftOf(field: string): WorldCall {
  const at = field.indexOf(':')
  return { verb: 'lift', kind: field.slice(0, at) as FenceKind, scope: field.slice(at + 1) }
}

function anyDelivery(
  hub: ModelHub,
  first: number,
  second: number,
  fits: (delivery: ModelDelivery) => boolean = (delivery) =>
    !isFinished(delivery) && delivery.state !== 'failed',
): string {
  const all = Object.values(hub.deliveries)
  const among = oneIn(3, second) ? all : all.filter(fits)
  return oneIn(40, first) ? nowhere : (pick(among, first)?.id ?? pick(all, first)?.id ?? nowhere)
}
