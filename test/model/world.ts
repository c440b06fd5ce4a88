import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { isHoldfastError } from '../../src/contract/errors.js'
import { prepareMessage } from '../../src/contract/message.js'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { NodeIdentity, StepResult, TakeItem } from '../../src/contract/steps.js'
import type { Store } from '../../src/record/connections.js'
import { functionsOf } from '../../src/record/functions.js'
import { keysOf } from '../../src/record/keys.js'
import { clockOf } from '../support/record.js'
import type { Coverage } from './coverage.js'
import { newHistory } from './history.js'
import { checkRecord, type Picture, takePicture } from './picture.js'
import { apply, type CallAnswer, type ModelCall } from './reference/apply.js'
import { fencesOver } from './reference/moves.js'
import {
  emptyHub,
  type ModelAnswer,
  type ModelHub,
  type ModelSettings,
  type Witness,
} from './reference/state.js'

/** The model knows its steps one by one. Answered by the handoffs of all items, then by the begins. */
interface TakeCall {
  readonly verb: 'take'
  readonly who: NodeIdentity
  readonly items: readonly TakeItem[]
}

/** A call with what the record needs besides what the model looks at. */
export type WorldCall = (ModelCall | TakeCall) & {
  readonly payload?: string
  readonly outcomes?: readonly Outcome[]
}

/** One record and its model, side by side. */
export interface World {
  readonly model: ModelHub
  /** Calls that were made, to be sent again later as they were. */
  readonly remembered: readonly WorldCall[]
  /** Every step taken, for the message of a failure. */
  readonly trace: readonly string[]
  /** Makes the call on the record and on the model, and compares answers, state and invariants. */
  step(call: WorldCall): Promise<CallAnswer>
  mint(prefix: string): string
}

/** What is done to the record by hand, and is no call that could be sent again. */
const byHand: ReadonlySet<string> = new Set(['go_stale', 'pass_deadline', 'expire_fence', 'delete_fence'])

const modelSessions = { s1: 'a', s2: 'b' } as const
const farFuture = 4_102_444_800_000

/** Settings that let nothing become stale by itself, and reach the limits soon. */
const modelSettings: ModelSettings = {
  inlineFanOut: 2,
  maxRedrive: 2,
  maxTakeovers: 2,
}

/** A fresh record on the server, which must have the library and is emptied. */
export async function openWorld(
  store: Store,
  coverage: Coverage,
  settings: ModelSettings = modelSettings,
): Promise<World> {
  const keys = keysOf('m')
  const functions = functionsOf(store, keys.tag)
  const send = (...command: (string | number)[]) => store.call(command)
  await send('FLUSHALL')
  await functions.init('model', false)
  await store.pipeline([
    ['HSET', keys.config, 'heartbeat_ms', 3_600_000, 'stale_after_ms', 36_000_000],
    ['HSET', keys.config, 'inline_fan_out', settings.inlineFanOut],
    ['HSET', keys.config, 'max_redrive', settings.maxRedrive, 'max_takeovers', settings.maxTakeovers],
    ...Object.entries(modelSessions).map(([session, host]) => ['HSET', keys.session(session), 'host', host]),
  ])
  const history = newHistory(coverage.transitions)
  const remembered: WorldCall[] = []
  const trace: string[] = []
  // Hosts whose next claim must look at its lanes, or at its peers, without being told that time passed.
  const rung = new Set<string>()
  const left = new Set<string>()
  let model = emptyHub(settings, modelSessions)
  let picture: Picture | undefined
  let lastLogId = '0-0'
  let minted = 0

  /** Time passes: the next look at parked lanes and at peers is due, and starts from the beginning. */
  async function letLooksFallDue(host: string, looks: boolean): Promise<void> {
    if (model.hosts[host] === undefined) return
    await send('HDEL', keys.host(host), 'peers_cursor')
    if (!rung.has(host) && looks) await send('HSET', keys.host(host), 'parked_look_at', 0)
    if (!looks) {
      // As after a look at every lane that ended just now.
      const bell = (await send('XREVRANGE', keys.bell(host), '+', '-', 'COUNT', 1)) as [string][]
      const pass = ['parked_cursor', '0', 'parked_bell', bell[0]?.[0] ?? '0-0', 'parked_look_at', farFuture]
      await send('HSET', keys.host(host), ...pass)
    }
    if (!left.has(host)) await send('HSET', keys.host(host), 'peers_look_at', 0)
  }

  async function call(it: WorldCall): Promise<{ answer: CallAnswer; more?: boolean; minted?: string }> {
    switch (it.verb) {
      case 'accept': {
        const reply = await functions.accept(messageOf(it))
        const { id, replayed } = reply
        return { answer: { kind: 'made', made: { ok: true, id, replayed, made: madeOf(reply) } }, minted: id }
      }
      case 'fan_out': {
        const reply = await functions.fanOut(it.message, it.chunk)
        return {
          answer: { kind: 'made', made: { ok: true, id: reply.id, replayed: false, made: madeOf(reply) } },
        }
      }
      case 'join':
        await functions.join(it.who, it.instance, [], '0-0')
        return { answer: { kind: 'done' } }
      case 'heartbeat':
        await functions.heartbeat(it.who, {
          lastLogId: '0-0',
          progressAgeMs: 0,
          blocking: { sumMs: 0, longestMs: 0 },
        })
        return { answer: { kind: 'done' } }
      case 'leave':
        await functions.leave(it.who)
        return { answer: { kind: 'done' } }
      case 'claim': {
        await letLooksFallDue(it.who.host, it.looks !== false)
        const reply = await functions.claim(it.who, it.request, it.count, {
          openIfEmpty: it.openIfEmpty,
        })
        expect([reply.ghosts, reply.missing], 'nothing is missing').toEqual([[], []])
        const deliveries = reply.deliveries.map(({ id, epoch, state, how, attempts }) => {
          return { id, epoch, state, how, attempts }
        })
        return { answer: { kind: 'claim', claim: { ok: true, deliveries } }, more: reply.more }
      }
      case 'mirror':
        return itemsOf(functions.mirror(it.who, it.items))
      case 'ack':
        return itemsOf(functions.ack(it.who, it.items))
      case 'take':
        return itemsOf(functions.take(it.who, it.items).then(({ results, begun }) => [...results, ...begun]))
      case 'refuse':
        return itemsOf(functions.refuse(it.who, it.items))
      case 'begin':
        return itemsOf(functions.begin(it.who, it.items))
      case 'report': {
        const items = it.items.map(({ id, grant, key, kind, content }) => {
          return { id, grant, key, outcome: outcomeOf(kind, content) }
        })
        return itemsOf(functions.report(it.who, items))
      }
      case 'pause':
      case 'hold':
      case 'block':
        await functions[it.verb](it.scope, 'a reason', 'tests')
        return { answer: { kind: 'done' } }
      case 'lift':
        await functions.lift(it.kind, it.scope, 'tests')
        return { answer: { kind: 'done' } }
      case 'release':
      case 'reject':
      case 'cancel':
      case 'hold_delivery': {
        const verb = it.verb === 'hold_delivery' ? 'holdDelivery' : it.verb
        const reply = await functions[verb](it.id, 'tests', 'reason' in it ? it.reason : 'a reason')
        if (it.verb === 'release') await nextMillisecond()
        return { answer: { kind: 'items', items: [{ ok: true, epoch: reply.epoch, state: reply.state }] } }
      }
      case 'retire':
        expect((await functions.retire(it.host, 'tests', 'a reason')).more).toBe(false)
        return { answer: { kind: 'done' } }
      case 'go_stale':
        await send('HSET', keys.node(it.host, it.node), 'heartbeat_at', 0)
        return { answer: { kind: 'done' } }
      case 'pass_deadline':
        await send('HSET', keys.delivery(it.id), it.which, 1)
        return { answer: { kind: 'done' } }
      case 'expire_fence':
        await send('HSET', keys.fences, it.field, JSON.stringify({ reason: 'over', until: 1 }))
        return { answer: { kind: 'done' } }
      case 'delete_fence':
        await send('HDEL', keys.fences, it.field)
        return { answer: { kind: 'done' } }
    }
  }

  /** A hold that is set after a release has a later time: whoever sets it is not faster than the clock. */
  async function nextMillisecond(): Promise<void> {
    const ms = await clockOf(store)
    while ((await clockOf(store)) <= ms);
  }

  function witnessOf(after: Picture, id: string | undefined): Witness {
    return {
      ...(id === undefined ? {} : { minted: id }),
      entryOf: (delivery) => sortable(after.deliveries.get(delivery)?.['entry'] ?? ''),
      timeOf: (delivery, field) => Number(after.deliveries.get(delivery)?.[field] ?? 0),
    }
  }

  async function step(planned: WorldCall): Promise<CallAnswer> {
    // A host whose bell was rung looks at its lanes, whatever was planned.
    const { verb } = planned
    const it = verb === 'claim' && rung.has(planned.who.host) ? { ...planned, looks: true } : planned
    trace.push(JSON.stringify(it))
    const before = model
    let made: Awaited<ReturnType<typeof call>>
    try {
      made = await call(it)
    } catch (error) {
      if (!isHoldfastError(error)) throw error
      made = { answer: { kind: 'refused', code: error.code } }
    }
    trace.push(
      `  answered ${JSON.stringify(made.answer)}${made.more === undefined ? '' : ` more ${made.more}`}`,
    )
    const after = await takePicture(store, keys.tag, lastLogId)
    lastLogId = after.log.at(-1)?.[0] ?? lastLogId

    const witness = witnessOf(after, made.minted)
    const expected = applyCall(before, it, witness)
    coverage.note(before, it, made.answer)
    if (!byHand.has(verb)) remembered.push(planned)
    expectAlike(made.answer, expected.answer, `the answer to ${it.verb}`)
    checkGrants(before, it, made.answer)
    model = expected.hub
    history.check(picture, after)
    expectAlike(stateInRecord(after), stateInModel(model), `the record after ${it.verb}`)
    checkRecord(after)
    if (made.more === false && it.verb === 'claim' && it.looks !== false) checkNothingLeft(it, witness)
    picture = after
    if (made.answer.kind !== 'refused') noteWakes(before, it)
    return made.answer
  }

  /** I3: no first claim and no begin under a standing fence, released deliveries under that hold excepted. */
  function checkGrants(before: ModelHub, it: WorldCall, answer: CallAnswer): void {
    if (answer.kind === 'claim' && it.verb === 'claim' && it.request > requestOf(before, it)) {
      for (const { id, how } of answer.claim.deliveries)
        if (how === 'new' || how === 'parked') unfenced(before, id)
    }
    if (answer.kind !== 'items' || (it.verb !== 'begin' && it.verb !== 'take')) return
    const asked = it.verb === 'begin' ? it.items : begunIn(it, answer.items)
    const begun = answer.items.slice(answer.items.length - asked.length)
    for (const [at, { id }] of asked.entries()) {
      const item = begun[at]
      if (item?.ok !== true) continue
      const attempts = before.deliveries[id]?.attempts ?? []
      if (item.attempt !== undefined && item.attempt > attempts.length) unfenced(before, id)
      history.begun(id, item.attempt ?? 0)
    }
  }

  function unfenced(before: ModelHub, id: string): void {
    const delivery = before.deliveries[id]
    if (delivery === undefined) return
    const stopping = fencesOver(before, delivery).filter(
      ({ kind, field }) => kind !== 'hold' || delivery.passes?.[field] === undefined,
    )
    expect(
      stopping.map(({ field }) => field),
      `I3: fences over ${id}, which was handed out`,
    ).toEqual([])
  }

  /** A claim that says there is no more leaves nothing that another claim would hand out or move. */
  function checkNothingLeft(it: Extract<WorldCall, { verb: 'claim' }>, witness: Witness): void {
    const another = apply(model, { ...it, request: it.request + 1, count: 1000 }, witness)
    const left = another.answer.kind === 'claim' ? another.answer.claim.deliveries : []
    expect(left, 'what a claim leaves that says there is no more').toEqual([])
    expect(stateInModel(another.hub).deliveries, 'what a claim leaves that says there is no more').toEqual(
      stateInModel(model).deliveries,
    )
  }

  function noteWakes(before: ModelHub, it: WorldCall): void {
    if (it.verb === 'lift') for (const host of Object.keys(before.lanes)) rung.add(host)
    if (it.verb === 'leave') left.add(it.who.host)
    if (it.verb === 'claim' && it.request > requestOf(before, it)) {
      rung.delete(it.who.host)
      left.delete(it.who.host)
    }
  }

  return {
    get model() {
      return model
    },
    remembered,
    trace,
    step,
    mint: (prefix) => {
      minted += 1
      return `${prefix}${minted}`
    },
  }
}

/** What the model says: of a take, mirror, ack and begin of each item. */
function applyCall(hub: ModelHub, call: WorldCall, witness: Witness): ReturnType<typeof apply> {
  if (call.verb !== 'take') return apply(hub, call, witness)
  const { who } = call
  const results: ModelAnswer[] = []
  const begun: ModelAnswer[] = []
  let now = hub
  for (const { grant, ...item } of call.items) {
    const mirrored = apply(now, { verb: 'mirror', who, items: [item] }, witness)
    const acked = apply(mirrored.hub, { verb: 'ack', who, items: [item] }, witness)
    if (acked.answer.kind !== 'items') return { hub, answer: acked.answer }
    now = acked.hub
    results.push(...acked.answer.items)
    if (grant === undefined || acked.answer.items[0]?.ok !== true) continue
    const begins = apply(now, { verb: 'begin', who, items: [{ ...item, grant }] }, witness)
    now = begins.hub
    if (begins.answer.kind === 'items') begun.push(...begins.answer.items)
  }
  return { hub: now, answer: { kind: 'items', items: [...results, ...begun] } }
}

/** The items of a take that begins were made of. */
function begunIn(call: TakeCall, answers: readonly ModelAnswer[]): TakeItem[] {
  return call.items.filter(({ grant }, at) => grant !== undefined && answers[at]?.ok)
}

/** Names every place in which the two differ. */
function expectAlike(found: unknown, wanted: unknown, what: string): void {
  if (isDeepStrictEqual(found, wanted)) return
  const differences: string[] = []
  compare(found, wanted, '', differences)
  throw new Error(`${what} is not the model's:\n${differences.slice(0, 12).join('\n')}`)
}

function compare(found: unknown, wanted: unknown, path: string, differences: string[]): void {
  if (isDeepStrictEqual(found, wanted)) return
  if (typeof found !== 'object' || typeof wanted !== 'object' || found === null || wanted === null) {
    differences.push(`${path}: ${JSON.stringify(found)}, the model says ${JSON.stringify(wanted)}`)
    return
  }
  const one = found as Record<string, unknown>
  const other = wanted as Record<string, unknown>
  for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
    compare(one[name], other[name], `${path}/${name}`, differences)
  }
}

function requestOf(hub: ModelHub, it: Extract<ModelCall, { verb: 'claim' }>): number {
  return hub.nodes[`${it.who.host}/${it.who.node}`]?.request ?? 0
}

function messageOf(it: Extract<WorldCall, { verb: 'accept' }>) {
  return prepareMessage({
    key: it.key,
    conversation: it.conversation,
    sender: 'tests',
    to: it.recipients.map((text) => {
      const name = text.slice(text.indexOf(':') + 1)
      return text.startsWith('host:') ? { host: name } : { session: name }
    }),
    payload: it.payload ?? '',
    deliverBy: it.deliverLate ? 1 : farFuture,
    ...(it.executeLate ? { executeBy: 1 } : {}),
  })
}

/** The model tells messages apart by the fingerprint that the record is given. */
export function acceptCall(
  call: Omit<Extract<WorldCall, { verb: 'accept' }>, 'fingerprint' | 'verb'>,
): WorldCall {
  const bare = { ...call, verb: 'accept' as const, fingerprint: '' }
  return { ...bare, fingerprint: messageOf(bare).fingerprint }
}

function outcomeOf(kind: Outcome['kind'], content: string): Outcome {
  return kind === 'result' ? { kind, result: content } : { kind, errorCode: 'code', errorJson: content }
}

function madeOf(reply: { deliveries: readonly { id: string; host: string; state: string }[] }) {
  return reply.deliveries.map(({ id, host, state }) => ({ id, host, state }))
}

async function itemsOf(results: Promise<readonly StepResult[]>): Promise<{ answer: CallAnswer }> {
  return { answer: { kind: 'items', items: (await results).map(answerOf) } }
}

function answerOf(result: StepResult): ModelAnswer {
  if (result.ok) {
    const { epoch, state, attempt, outcome, replayed } = result
    return {
      ok: true,
      epoch,
      state,
      ...(attempt === undefined ? {} : { attempt }),
      ...(outcome === undefined ? {} : { outcome }),
      ...(replayed === true ? { replayed } : {}),
    }
  }
  const { code, epoch, state, owner } = result
  return {
    ok: false,
    code,
    ...(epoch === undefined ? {} : { epoch }),
    ...(state === undefined ? {} : { state }),
    ...(owner === undefined ? {} : { owner }),
  }
}

function sortable(entry: string): string {
  const [ms = '', sequence = ''] = entry.split('-')
  return `${ms.padStart(15, '0')}-${sequence.padStart(8, '0')}`
}

/** What model and record must agree on, from the record. */
function stateInRecord(picture: Picture) {
  const nodes: Record<string, unknown> = {}
  const retired: string[] = []
  for (const [name, row] of picture.hashes) {
    if (name.startsWith(':node:')) {
      const { incarnation, instance, state, request } = row
      nodes[name.slice(6)] = [Number(incarnation), instance, state, Number(request)]
    }
    if (name.startsWith(':host:') && row['retired_at'] !== undefined) retired.push(name.slice(6))
  }
  const deliveries = [...picture.deliveries].map(([id, row]) => {
    const attempts = Array.from({ length: Number(row['attempts']) }, (_, at) => {
      const field = (name: string) => row[`attempt_${at + 1}_${name}`]
      return [
        field('grant'),
        field('node'),
        Number(field('incarnation')),
        field('status'),
        field('outcome'),
        field('report_key'),
        Number(field('late') ?? 0),
      ]
    })
    const held = row['state'] === 'held'
    const picked = {
      host: row['host'],
      state: row['state'],
      epoch: Number(row['epoch']),
      owner: row['owner'],
      incarnation: Number(row['incarnation'] ?? 0),
      takeovers: Number(row['takeovers'] ?? 0),
      parked: row['parked_by'] !== undefined,
      held: held ? `${row['held_reason']} ${row['held_fence']}` : '',
      failed: row['failed_code'],
      released: row['released_at'] !== undefined,
      attempts,
    }
    return [id, picked] as const
  })
  const lanes = [...picture.lists].filter(([name]) => name.startsWith(':lane:'))
  return {
    deliveries: Object.fromEntries(deliveries),
    nodes,
    retired: retired.sort(),
    lanes: Object.fromEntries(lanes.map(([name, ids]) => [name.slice(6), ids])),
    fences: Object.keys(picture.hashes.get(':fences') ?? {}).sort(),
    unknown: [...(picture.zsets.get(':unknown')?.keys() ?? [])].sort(),
    lateReports: Number(picture.hashes.get(':counts')?.['late_reports'] ?? 0),
    messages: Object.fromEntries(
      [...picture.hashes]
        .filter(([name]) => name.startsWith(':message:'))
        .map(([name, row]) => [name.slice(9), Number(row['made'])]),
    ),
  }
}

/** The same from the model. */
function stateInModel(hub: ModelHub): ReturnType<typeof stateInRecord> {
  const deliveries = Object.values(hub.deliveries).map((delivery) => {
    const picked = {
      host: delivery.host,
      state: delivery.state,
      epoch: delivery.epoch,
      owner: delivery.owner,
      incarnation: delivery.incarnation ?? 0,
      takeovers: delivery.takeovers,
      parked: delivery.parked,
      held: delivery.state === 'held' ? `${delivery.heldReason} ${delivery.heldFence ?? ''}` : '',
      failed: delivery.failedCode,
      released: delivery.passes !== undefined,
      attempts: delivery.attempts.map(({ grant, node, incarnation, status, outcome, settledBy, late }) => [
        grant,
        node,
        incarnation,
        status,
        outcome,
        settledBy?.key,
        late,
      ]),
    }
    return [delivery.id, picked] as const
  })
  return {
    deliveries: Object.fromEntries(deliveries),
    nodes: Object.fromEntries(
      Object.values(hub.nodes).map(({ host, id, incarnation, instance, left, request }) => [
        `${host}/${id}`,
        [incarnation, instance, left ? 'left' : 'live', request],
      ]),
    ),
    retired: Object.entries(hub.hosts)
      .filter(([, { retired }]) => retired)
      .map(([host]) => host)
      .sort(),
    lanes: Object.fromEntries(
      Object.entries(hub.lanes).flatMap(([host, lanes]) =>
        Object.entries(lanes).map(([name, { ids }]) => [`${host}/${name}`, ids]),
      ),
    ),
    fences: Object.keys(hub.fences).sort(),
    unknown: Object.keys(hub.unknown).sort(),
    lateReports: hub.lateReports,
    messages: Object.fromEntries(Object.values(hub.messages).map(({ id, made }) => [id, made])),
  }
}
