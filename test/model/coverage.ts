import type { CallAnswer } from './reference/apply.js'
import { isExecuting, isFinished, type ModelDelivery, type ModelHub } from './reference/state.js'
import type { WorldCall } from './world.js'

/** The states of a delivery, told apart where verbs treat them apart. */
export const situations = [
  'queued',
  'parked',
  'claimed',
  'mirrored',
  'idle',
  'executing',
  'finished',
  'held',
  'failed',
  'unknown',
] as const
export type Situation = (typeof situations)[number]

/** Every verb that names deliveries or may touch them. */
const verbs = [
  'claim',
  'mirror',
  'ack',
  'take',
  'take with a grant',
  'refuse failed',
  'refuse unknown',
  'refuse payload_corrupt',
  'begin',
  'report result',
  'report terminal',
  'report not_sent',
  'report outcome_unknown',
  'release',
  'reject',
  'hold_delivery',
  'cancel',
  'retire',
  'pause',
  'hold',
  'block',
  'lift',
  'expire_fence',
  'delete_fence',
  'join',
  'leave',
  'go_stale',
] as const

const owned = ['join', 'leave', 'go_stale']

/** Cells that cannot be reached, with the reason. */
const impossible: ReadonlyMap<string, string> = new Map(
  owned.flatMap((verb) =>
    (['queued', 'parked', 'held'] as const).map((situation) => [
      `${situation} × ${verb}`,
      'it has no owner: what a process does to itself cannot touch it',
    ]),
  ),
)

/** Answers that must have been seen, besides those of every cell. */
const answersWanted: readonly string[] = [
  ...['IDEMPOTENCY_MISMATCH', 'NO_ROUTE', 'HOST_RETIRED', 'ok', 'replayed'].map((code) => `accept ${code}`),
  ...['MESSAGE_NOT_FOUND', 'ok'].map((code) => `fan_out ${code}`),
  ...['SUPERSEDED', 'MIRROR_CLONED', 'LEFT', 'ok'].map((code) => `join ${code}`),
  ...['NOT_JOINED', 'SUPERSEDED', 'LEFT', 'ok'].map((code) => `heartbeat ${code}`),
  ...['claim', 'mirror', 'ack', 'take', 'refuse', 'begin'].flatMap((verb) =>
    ['HOST_RETIRED', 'NOT_JOINED', 'SUPERSEDED', 'LEFT', 'ok'].map((code) => `${verb} ${code}`),
  ),
  ...['HOST_RETIRED', 'NOT_JOINED', 'SUPERSEDED', 'ok'].map((code) => `leave ${code}`),
  'claim STALE_REQUEST',
  ...['new', 'parked', 'resume', 'takeover'].map((how) => `claim how ${how}`),
  ...['mirror', 'ack', 'take', 'refuse', 'begin'].flatMap((verb) =>
    ['DELIVERY_NOT_FOUND', 'STALE_EPOCH', 'NOT_OWNER', 'WRONG_STATE'].map((code) => `${verb} ${code}`),
  ),
  ...['begin', 'take'].flatMap((verb) =>
    ['HELD', 'BLOCKED', 'EXPIRED', 'PAUSED', 'GRANT_OPEN', 'ALREADY_SETTLED'].map(
      (code) => `${verb} ${code}`,
    ),
  ),
  ...[
    'NOT_JOINED',
    'DELIVERY_NOT_FOUND',
    'NOT_BEGUN',
    'ATTEMPT_NOT_FOUND',
    'NOT_OWNER',
    'ok',
    'replayed',
  ].map((code) => `report ${code}`),
  ...['ALREADY_SETTLED', 'IDEMPOTENCY_MISMATCH'].map((code) => `report ${code}`),
  ...['DELIVERY_NOT_FOUND', 'NOT_HELD', 'HOST_RETIRED', 'ok'].map((code) => `release ${code}`),
  ...['DELIVERY_NOT_FOUND', 'NOT_HELD', 'ok'].map((code) => `reject ${code}`),
  ...['hold_delivery', 'cancel'].flatMap((verb) =>
    ['DELIVERY_NOT_FOUND', 'EXECUTING', 'ALREADY_SETTLED', 'WRONG_STATE', 'ok'].map(
      (code) => `${verb} ${code}`,
    ),
  ),
  ...['HOST_NOT_FOUND', 'ok'].map((code) => `retire ${code}`),
  ...['FENCE_NOT_FOUND', 'ok'].map((code) => `lift ${code}`),
  ...['poison', 'redrive_exhausted', 'fence', 'payload_corrupt', 'retired'].map((reason) => `held ${reason}`),
  ...['expired', 'blocked', 'cancelled', 'rejected'].map((code) => `failed ${code}`),
]

/** What a run has reached. */
export interface Coverage {
  readonly cells: Map<string, number>
  readonly answers: Map<string, number>
  readonly transitions: Set<string>
  note(before: ModelHub, call: WorldCall, answer: CallAnswer): void
  noteEnd(hub: ModelHub): void
  /** Cells and answers that are still missing. */
  missing(): string[]
  table(): string
}

function situationOf(delivery: ModelDelivery): Situation {
  if (delivery.state === 'queued') return delivery.parked ? 'parked' : 'queued'
  if (delivery.state !== 'delivered') return delivery.state
  if (isExecuting(delivery)) return 'executing'
  return isFinished(delivery) ? 'finished' : 'idle'
}

export function newCoverage(): Coverage {
  const cells = new Map<string, number>()
  const answers = new Map<string, number>()
  const transitions = new Set<string>()
  const count = (counts: Map<string, number>, name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)

  function note(before: ModelHub, call: WorldCall, answer: CallAnswer): void {
    for (const [verb, delivery] of touched(before, call, answer)) {
      count(cells, `${situationOf(delivery)} × ${verb}`)
    }
    for (const word of wordsOf(answer)) count(answers, `${call.verb} ${word}`)
  }

  function noteEnd(hub: ModelHub): void {
    for (const delivery of Object.values(hub.deliveries)) {
      if (delivery.state === 'held') count(answers, `held ${delivery.heldReason}`)
      if (delivery.state === 'failed') count(answers, `failed ${delivery.failedCode}`)
    }
  }

  return {
    cells,
    answers,
    transitions,
    note,
    noteEnd,
    missing: () => [
      ...verbs
        .flatMap((verb) => situations.map((situation) => `${situation} × ${verb}`))
        .filter((cell) => !cells.has(cell) && !impossible.has(cell)),
      ...answersWanted.filter((answer) => !answers.has(answer)),
    ],
    table: () => tableOf(cells),
  }
}

function wordsOf(answer: CallAnswer): string[] {
  switch (answer.kind) {
    case 'refused':
      return [answer.code]
    case 'items':
      return answer.items.map((item) => (item.ok ? (item.replayed ? 'replayed' : 'ok') : item.code))
    case 'claim':
      return ['ok', ...answer.claim.deliveries.map(({ how }) => `how ${how}`)]
    case 'made':
      return [answer.made.replayed ? 'replayed' : 'ok']
    case 'done':
      return ['ok']
  }
}

/** The deliveries that a call names, or may touch, each with the verb as the table names it. */
function touched(hub: ModelHub, call: WorldCall, answer: CallAnswer): [string, ModelDelivery][] {
  const all = Object.values(hub.deliveries)
  const named = (verb: string, id: string): [string, ModelDelivery][] => {
    const delivery = hub.deliveries[id]
    return delivery === undefined ? [] : [[verb, delivery]]
  }
  switch (call.verb) {
    case 'claim':
      if (answer.kind !== 'claim') return []
      return all.filter(({ host }) => host === call.who.host).map((delivery) => ['claim', delivery])
    case 'mirror':
    case 'ack':
    case 'begin':
      return call.items.flatMap(({ id }) => named(call.verb, id))
    case 'take':
      return call.items.flatMap(({ id, grant }) =>
        named(grant === undefined ? 'take' : 'take with a grant', id),
      )
    case 'refuse':
      return call.items.flatMap(({ id, verdict, reason }) =>
        named(`refuse ${reason === 'payload_corrupt' ? reason : verdict}`, id),
      )
    case 'report':
      return call.items.flatMap(({ id, kind }) => named(`report ${kind}`, id.split('/')[0] ?? ''))
    case 'release':
    case 'reject':
    case 'cancel':
    case 'hold_delivery':
      return named(call.verb, call.id)
    case 'retire':
      return all.filter(({ host }) => host === call.host).map((delivery) => [call.verb, delivery])
    case 'pause':
    case 'hold':
    case 'block':
    case 'lift':
      if (answer.kind === 'refused') return []
      return all.filter((delivery) => covers(call.scope, delivery)).map((delivery) => [call.verb, delivery])
    case 'expire_fence':
    case 'delete_fence': {
      const scope = call.field.slice(call.field.indexOf(':') + 1)
      return all.filter((delivery) => covers(scope, delivery)).map((delivery) => [call.verb, delivery])
    }
    case 'join':
    case 'leave':
      if (answer.kind === 'refused') return []
      return ownedBy(all, call.who.host, call.who.node).map((delivery) => [call.verb, delivery])
    case 'go_stale':
      return ownedBy(all, call.host, call.node).map((delivery) => [call.verb, delivery])
    default:
      return []
  }
}

function ownedBy(all: readonly ModelDelivery[], host: string, node: string): ModelDelivery[] {
  return all.filter((delivery) => delivery.host === host && delivery.owner === node)
}

function covers(scope: string, delivery: ModelDelivery): boolean {
  const { host, conversation, session } = delivery
  return ['hub', `host:${host}`, `conversation:${conversation}`, `session:${session}`].includes(scope)
}

function tableOf(cells: ReadonlyMap<string, number>): string {
  const width = Math.max(...verbs.map((verb) => verb.length))
  const head = [' '.repeat(width), ...situations.map((each) => each.padStart(9))].join(' ')
  const lines = verbs.map((verb) =>
    [
      verb.padEnd(width),
      ...situations.map((situation) => {
        const cell = `${situation} × ${verb}`
        return (impossible.has(cell) ? '–' : String(cells.get(cell) ?? 0)).padStart(9)
      }),
    ].join(' '),
  )
  return [head, ...lines].join('\n')
}
