import type { NodeIdentity } from '../../src/contract/steps.js'
import type { Situation } from './coverage.js'
import { beginning } from './generate.js'
import type { CallAnswer } from './reference/apply.js'
import type { ModelDelivery } from './reference/state.js'
import { acceptCall, type World, type WorldCall } from './world.js'

/** Directed steps, for what random sequences reach seldom: each is compared with the model like any other. */

const host = 'a'
const node: NodeIdentity = { host, node: 'n1', incarnation: 1 }
const other: NodeIdentity = { host, node: 'n2', incarnation: 1 }
const nowhere = '1-000000.1'

function at(world: World, id: string): ModelDelivery {
  const delivery = world.model.deliveries[id]
  if (delivery === undefined) throw new Error(`no delivery ${id} in the model`)
  return delivery
}

function item(world: World, id: string) {
  return { id, epoch: world.model.deliveries[id]?.epoch ?? 1 }
}

/** The same under a new grant. */
function granted(world: World, ...ids: string[]) {
  return ids.map((id) => ({ ...item(world, id), grant: world.mint('g') }))
}

function madeBy(answer: CallAnswer): string {
  const id = answer.kind === 'made' ? answer.made.made[0]?.id : undefined
  if (id === undefined) throw new Error(`nothing was made: ${JSON.stringify(answer)}`)
  return id
}

async function begin(world: World): Promise<void> {
  for (const call of beginning) await world.step(call)
}

function message(world: World, recipient = `host:${host}`): WorldCall {
  const key = world.mint('k')
  const rest = { payload: 'payload', deliverLate: false, executeLate: false }
  return acceptCall({ key, conversation: 'c2', recipients: [recipient], ...rest })
}

function claimBy(world: World, who: NodeIdentity = node, count = 100): WorldCall {
  const request = (world.model.nodes[`${who.host}/${who.node}`]?.request ?? 0) + 1
  return { verb: 'claim', who, request, count }
}

const path = ['claimed', 'mirrored', 'idle', 'executing', 'finished'] as const

/** Brings a new delivery of host `a` into the situation, by node `a/n1` where it needs one. */
async function bring(world: World, situation: Situation): Promise<string> {
  const id = madeBy(await world.step(message(world)))
  const who = node
  const steps: Partial<Record<Situation, () => WorldCall>> = {
    claimed: () => claimBy(world),
    mirrored: () => ({ verb: 'mirror', who, items: [item(world, id)] }),
    idle: () => ({ verb: 'ack', who, items: [item(world, id)] }),
    executing: () => ({ verb: 'begin', who, items: granted(world, id) }),
    finished: () => reportOf(world, id, 'result'),
  }
  const takes = path.indexOf(situation as (typeof path)[number]) + 1
  for (const step of path.slice(0, takes)) await world.step(steps[step]?.() ?? claimBy(world))
  switch (situation) {
    case 'parked':
      await world.step({ verb: 'pause', scope: 'conversation:c2' })
      await world.step(claimBy(world))
      break
    case 'held':
      await world.step({ verb: 'hold_delivery', id, reason: 'looked at' })
      break
    case 'failed':
    case 'unknown':
      await world.step(claimBy(world))
      await world.step({
        verb: 'refuse',
        who,
        items: [{ ...item(world, id), verdict: situation, reason: 'no_good' }],
      })
      break
    default:
  }
  return id
}

function reportOf(
  world: World,
  id: string,
  kind: 'result' | 'terminal' | 'not_sent' | 'outcome_unknown',
): WorldCall {
  const grant = at(world, id).attempts.at(-1)?.grant ?? world.mint('g')
  return { verb: 'report', who: node, items: [{ id, grant, key: world.mint('r'), kind, content: '"said"' }] }
}

/** The cell `<situation> × <verb>`. */
export async function reachCell(world: World, cell: string): Promise<void> {
  const [situation = '', verb = ''] = cell.split(' × ')
  await begin(world)
  const id = await bring(world, situation as Situation)
  const who = node
  const items = [item(world, id)]
  const [name, word] = verb.split(' ')
  const fence = { verb: 'pause', scope: `host:${host}` } as const
  switch (name) {
    case 'claim':
      await world.step(claimBy(world))
      return
    case 'mirror':
    case 'ack':
      await world.step({ verb: name, who, items })
      return
    case 'take':
      await world.step({ verb: 'take', who, items: word === undefined ? items : granted(world, id) })
      return
    case 'begin':
      await world.step({ verb: 'begin', who, items: granted(world, id) })
      return
    case 'refuse': {
      const verdict = word === 'unknown' ? 'unknown' : 'failed'
      const reason = word === 'payload_corrupt' ? word : 'no_good'
      await world.step({ verb: 'refuse', who, items: [{ ...item(world, id), verdict, reason }] })
      return
    }
    case 'report':
      await world.step(reportOf(world, id, word as 'result'))
      return
    case 'release':
    case 'reject':
    case 'cancel':
      await world.step({ verb: name, id })
      return
    case 'hold_delivery':
      await world.step({ verb: name, id, reason: 'looked at' })
      return
    case 'retire':
      await world.step({ verb: 'retire', host })
      return
    case 'pause':
    case 'hold':
    case 'block':
      await world.step({ verb: name, scope: `host:${host}` })
      return
    case 'lift':
      await world.step(fence)
      await world.step({ verb: 'lift', kind: 'pause', scope: fence.scope })
      return
    case 'expire_fence':
    case 'delete_fence':
      await world.step(fence)
      await world.step({ verb: name, field: `pause:${fence.scope}` })
      return
    case 'join':
      await world.step({ verb: 'join', who: { ...who, incarnation: 2 }, instance: 'i2' })
      return
    case 'leave':
      await world.step({ verb: 'leave', who })
      return
    case 'go_stale':
      await world.step({ verb: 'go_stale', host, node: who.node })
      return
    default:
      throw new Error(`no recipe for ${cell}`)
  }
}

/** Every verb of a node, as this process. */
async function everyNodeVerb(world: World, who: NodeIdentity, id: string): Promise<void> {
  const one = item(world, id)
  await world.step({ verb: 'heartbeat', who })
  await world.step(claimBy(world, who))
  await world.step({ verb: 'mirror', who, items: [one] })
  await world.step({ verb: 'ack', who, items: [one] })
  await world.step({ verb: 'take', who, items: granted(world, id) })
  await world.step({ verb: 'refuse', who, items: [{ ...one, verdict: 'failed', reason: 'no_good' }] })
  await world.step({ verb: 'begin', who, items: granted(world, id) })
  const report = {
    id,
    grant: world.mint('g'),
    key: world.mint('r'),
    kind: 'result',
    content: '"said"',
  } as const
  await world.step({ verb: 'report', who, items: [report] })
  await world.step({ verb: 'leave', who })
}

/** Processes that may not work any more, and names of nothing. */
export async function meetEveryGate(world: World): Promise<void> {
  await begin(world)
  const held = await bring(world, 'held')
  const id = await bring(world, 'claimed')
  await everyNodeVerb(world, { ...node, incarnation: 9 }, id)
  await everyNodeVerb(world, { ...other, incarnation: 1 }, id)
  const second = { ...node, incarnation: 2 }
  await world.step({ verb: 'join', who: second, instance: 'i2' })
  await everyNodeVerb(world, node, id)
  await world.step({ verb: 'join', who: node, instance: 'i1' })
  await world.step({ verb: 'join', who: second, instance: 'clone' })
  await everyNodeVerb(world, second, nowhere)
  await everyNodeVerb(world, second, id)
  await world.step({ verb: 'join', who: second, instance: 'i2' })
  const third = { ...node, incarnation: 3 }
  await world.step({ verb: 'join', who: third, instance: 'i3' })
  await world.step({ verb: 'claim', who: third, request: 2, count: 1 })
  await world.step({ verb: 'claim', who: third, request: 1, count: 1 })
  for (const verb of ['release', 'reject', 'cancel'] as const) await world.step({ verb, id: nowhere })
  await world.step({ verb: 'hold_delivery', id: nowhere, reason: 'looked at' })
  await world.step({ verb: 'fan_out', message: '1-000000', chunk: 1 })
  await world.step({ verb: 'lift', kind: 'block', scope: 'hub' })
  await world.step(message(world, 'session:never-seen'))
  const first = message(world)
  await world.step(first)
  await world.step(first)
  await world.step({ ...first, ...message(world), key: 'k0' } as WorldCall)
  await world.step({ verb: 'retire', host: 'never-seen' })
  await world.step({ verb: 'retire', host })
  await everyNodeVerb(world, third, id)
  await world.step({ verb: 'release', id: held })
  await world.step(message(world))
}

/** Crashes up to the limit, redrives up to the limit, and every answer of begin and report. */
export async function meetEveryLimit(world: World): Promise<void> {
  await begin(world)
  await bring(world, 'claimed')
  for (const incarnation of [2, 3]) {
    await world.step({ verb: 'join', who: { ...node, incarnation }, instance: `i${incarnation}` })
    await world.step(claimBy(world, { ...node, incarnation }, 1))
    await world.step(claimBy(world, { ...node, incarnation }, 1))
  }
}

/** Steps that its owner may not take, under an old epoch, and by another node. */
async function everyWrongStep(world: World, id: string): Promise<void> {
  await world.step({ verb: 'join', who: other, instance: 'i1' })
  const one = item(world, id)
  const tries = [
    { who: node, items: [one] },
    { who: node, items: [{ id, epoch: one.epoch + 1 }] },
    { who: other, items: [one] },
  ]
  for (const { who, items } of tries) {
    await world.step({ verb: 'mirror', who, items })
    await world.step({ verb: 'ack', who, items })
    const begins = items.map((each) => ({ ...each, grant: world.mint('g') }))
    await world.step({ verb: 'take', who, items: begins })
    await world.step({ verb: 'begin', who, items: begins })
    const said = { verdict: 'failed', reason: 'no_good' } as const
    await world.step({ verb: 'refuse', who, items: items.map((each) => ({ ...each, ...said })) })
  }
}

export async function meetEveryAnswer(world: World): Promise<void> {
  await begin(world)
  const exhausted = await bring(world, 'executing')
  await world.step(reportOf(world, exhausted, 'not_sent'))
  await world.step({ verb: 'begin', who: node, items: granted(world, exhausted) })
  await world.step(reportOf(world, exhausted, 'not_sent'))
  await world.step({ verb: 'begin', who: node, items: granted(world, exhausted) })
  const open = await bring(world, 'executing')
  for (const verb of ['begin', 'take'] as const) {
    await world.step({ verb, who: node, items: granted(world, open) })
  }
  await world.step({ verb: 'cancel', id: open })
  await world.step({ verb: 'hold_delivery', id: open, reason: 'looked at' })
  const report = reportOf(world, open, 'terminal')
  await world.step(report)
  await world.step(report)
  if (report.verb === 'report') {
    await world.step({ ...report, items: report.items.map((each) => ({ ...each, content: '"else"' })) })
    await world.step({ ...report, items: report.items.map((each) => ({ ...each, id: `${open}/7` })) })
    await world.step({
      ...report,
      items: report.items.map((each) => ({ ...each, id: `${open}/1`, grant: 'no' })),
    })
    await world.step({ ...report, items: report.items.map((each) => ({ ...each, key: world.mint('r') })) })
  }
  for (const verb of ['begin', 'take'] as const) {
    await world.step({ verb, who: node, items: granted(world, open) })
  }
  for (const kind of ['pause', 'hold', 'block'] as const) {
    const idle = await bring(world, 'idle')
    const claimed = await bring(world, 'claimed')
    await world.step({ verb: kind, scope: 'conversation:c2' })
    await world.step({ verb: 'begin', who: node, items: granted(world, idle) })
    await world.step({ verb: 'take', who: node, items: granted(world, claimed) })
    await world.step({ verb: 'lift', kind, scope: 'conversation:c2' })
  }
  for (const [verb, situation] of [
    ['begin', 'idle'],
    ['take', 'claimed'],
  ] as const) {
    const late = await bring(world, situation)
    await world.step({ verb: 'pass_deadline', id: late, which: 'execute_by' })
    await world.step({ verb, who: node, items: granted(world, late) })
  }
  const corrupt = await bring(world, 'claimed')
  const refused = { ...item(world, corrupt), verdict: 'failed', reason: 'payload_corrupt' } as const
  await world.step({ verb: 'refuse', who: node, items: [refused] })
  const rejected = await bring(world, 'held')
  await world.step({ verb: 'reject', id: rejected })
  const unknown = await bring(world, 'unknown')
  await world.step({ verb: 'cancel', id: unknown })
  await world.step({ verb: 'hold_delivery', id: unknown, reason: 'looked at' })
  await everyWrongStep(world, unknown)
  const idle = await bring(world, 'idle')
  const said = { verdict: 'failed', reason: 'no_good' } as const
  await world.step({ verb: 'refuse', who: node, items: [{ ...item(world, idle), ...said }] })
  const blocked = await bring(world, 'queued')
  await world.step({ verb: 'block', scope: 'conversation:c2' })
  await world.step(claimBy(world))
  await world.step({ verb: 'hold_delivery', id: blocked, reason: 'looked at' })
  await world.step({ verb: 'cancel', id: blocked })
}
