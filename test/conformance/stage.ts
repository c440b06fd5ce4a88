import { expect } from 'vitest'
import { type ErrorCode, errorCatalogue, HoldfastError } from '../../src/contract/errors.js'
import type { Accepted, HubCalls } from '../../src/contract/hub.js'
import type { OutgoingMessage } from '../../src/contract/message.js'
import type { Outcome } from '../../src/contract/outcomes.js'
import type {
  BeginItem,
  ClaimedDelivery,
  ClaimReply,
  NodeIdentity,
  ReportItem,
  StepItem,
  StepRefused,
  StepResult,
  TakeItem,
  TakeReply,
} from '../../src/contract/steps.js'
import type { ClaimSendOptions, NodeTransport } from '../../src/node/transport.js'
import { until } from '../support/until.js'
import type { Settings, Surface } from './environment.js'

/** A fresh record for one test. */
export type Make = (settings?: Settings) => Promise<Stage>

/** A surface with what tests do on it. */
export interface Stage extends Surface {
  /** Accepts a message: to host `a`, in conversation `c1`, with a key of its own, unless told otherwise. */
  accept(message?: Partial<OutgoingMessage>): Promise<Accepted>
  /** Accepts as many, one after the other; answers the delivery ids. */
  acceptMany(count: number, message?: Partial<OutgoingMessage>): Promise<string[]>
  /** Joins host `a` as node `n1`, unless told otherwise, over a transport of its own. */
  join(who?: Partial<NodeIdentity>, options?: { readonly instance?: string }): Promise<Speaker>
  /** Waits until so many claims wait. */
  untilWaiting(count?: number): Promise<void>
  /** What the hub by the way under test shows, which must be what the record says. */
  shown<Shown>(read: (hub: HubCalls) => Promise<Shown>): Promise<Shown>
}

export type ClaimOptions = Partial<ClaimSendOptions> & { readonly request?: number }

/** One process of a node, as it speaks over a transport. */
export interface Speaker {
  readonly who: NodeIdentity
  readonly transport: NodeTransport
  /** The next request, unless it is named; without waiting, unless told otherwise. */
  claim(count?: number, options?: ClaimOptions): Promise<ClaimReply>
  /** Claims until there is no more; answers everything that was handed out. */
  claimAll(count?: number): Promise<ClaimedDelivery[]>
  /** Claims, mirrors and acknowledges everything. */
  deliverAll(): Promise<ClaimedDelivery[]>
  /** Accepts one message and takes it so far. */
  takeOne(state: 'claimed' | 'mirrored' | 'delivered', message?: Partial<OutgoingMessage>): Promise<StepItem>
  mirror(...items: StepItem[]): Promise<readonly StepResult[]>
  ack(...items: StepItem[]): Promise<readonly StepResult[]>
  begin(...items: BeginItem[]): Promise<readonly StepResult[]>
  take(...items: TakeItem[]): Promise<TakeReply>
  /** Begins one delivery, which must be granted. */
  open(item: StepItem): Promise<OpenAttempt>
  report(...items: ReportItem[]): Promise<readonly StepResult[]>
  /** Reports one attempt. */
  conclude(open: OpenAttempt, outcome: Outcome, changes?: Partial<ReportItem>): Promise<StepResult>
  beat(): Promise<unknown>
  leave(): Promise<void>
}

/** An attempt that was granted. */
export interface OpenAttempt extends BeginItem {
  readonly attempt: string
}

export const beat = { lastLogId: '0-0', progressAgeMs: 0, blocking: { sumMs: 0, longestMs: 0 } }
export const kim = { actor: 'kim', reason: 'asked to' }
export const done = { kind: 'result', result: '{"n":1}' } as const satisfies Outcome
export const terminal = {
  kind: 'terminal',
  errorCode: 'gone',
  errorJson: '{"why":1}',
} as const satisfies Outcome
export const notSent = { kind: 'not_sent', errorCode: 'busy' } as const satisfies Outcome
export const unknown = { kind: 'outcome_unknown', errorCode: 'timeout' } as const satisfies Outcome
/** Ids of the right form that were never given. */
export const neverMessage = '1764430000000-000000'
export const never = `${neverMessage}.1`

export const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)
export const item = ({ id, epoch }: StepItem): StepItem => ({ id, epoch })

export function stageOn(surface: Surface): Stage {
  let messages = 0
  async function accept(message: Partial<OutgoingMessage> = {}): Promise<Accepted> {
    messages += 1
    return await surface.hub.accept({
      key: `key-${messages}`,
      conversation: 'c1',
      sender: 'tests',
      to: [{ host: 'a' }],
      payload: `payload ${messages}`,
      ...message,
    })
  }
  return {
    ...surface,
    accept,
    acceptMany: async (count, message) => {
      const ids: string[] = []
      for (let made = 0; made < count; made += 1) ids.push(...idsOf((await accept(message)).deliveries))
      return ids
    },
    join: async (given = {}, { instance } = {}) => {
      const who = { host: 'a', node: 'n1', incarnation: 1, ...given }
      const transport = await surface.transport(who.host)
      await transport.join(who, instance ?? `i${who.incarnation}`, [], '0-0')
      return speakerOf(who, transport, accept)
    },
    untilWaiting: async (count = 1) => {
      await until(async () => (await surface.waiting()) === count, { what: `${count} claims waiting` })
    },
    shown: async (read) => {
      const [found, wanted] = [await read(surface.hub), await read(surface.reference)]
      expect(found).toEqual(wanted)
      return found
    },
  }
}

let grants = 0

function speakerOf(who: NodeIdentity, transport: NodeTransport, accept: Stage['accept']): Speaker {
  let last = 0

  function claim(count = 100, options: ClaimOptions = {}): Promise<ClaimReply> {
    const { request = last + 1, waitMs = 0, signal = new AbortController().signal, ...rest } = options
    last = Math.max(last, request)
    return transport.claim(who, request, count, { waitMs, signal, ...rest })
  }
  async function claimAll(count?: number): Promise<ClaimedDelivery[]> {
    const found: ClaimedDelivery[] = []
    for (let calls = 0; calls < 1000; calls += 1) {
      const reply = await claim(count)
      found.push(...reply.deliveries)
      if (!reply.more) return found
    }
    throw new Error('the claim says "more" for ever')
  }
  const mirror = (...items: StepItem[]) => transport.mirror(who, items, {})
  const ack = (...items: StepItem[]) => transport.ack(who, items, {})
  const begin = (...items: BeginItem[]) => transport.begin(who, items, {})
  const report = (...items: ReportItem[]) => transport.report(who, items, {})
  async function deliverAll(): Promise<ClaimedDelivery[]> {
    const claimed = await claimAll()
    const due = claimed.filter(({ state }) => state !== 'delivered')
    if (due.length === 0) return claimed
    for (const answer of [...(await mirror(...due)), ...(await ack(...due))]) expect(answer.ok).toBe(true)
    return claimed
  }

  return {
    who,
    transport,
    claim,
    claimAll,
    deliverAll,
    takeOne: async (state, message) => {
      await accept(message)
      const [claimed] = await claimAll()
      if (claimed === undefined) throw new Error('nothing was handed out')
      if (state !== 'claimed') await mirror(claimed)
      if (state === 'delivered') await ack(claimed)
      return item(claimed)
    },
    mirror,
    ack,
    begin,
    take: (...items) => transport.take(who, items, {}),
    open: async (given) => {
      grants += 1
      const asked = { ...item(given), grant: `grant-${grants}` }
      const [answer] = await begin(asked)
      if (!answer?.ok) throw new Error(`begin was refused: ${JSON.stringify(answer)}`)
      return { ...asked, attempt: `${given.id}/${answer.attempt}` }
    },
    report,
    conclude: async ({ attempt, grant }, outcome, changes = {}) => {
      const key = `${grant}.${outcome.kind}`
      const [answer] = await report({ id: attempt, grant, key, outcome, ...changes })
      if (answer === undefined) throw new Error('no answer')
      return answer
    },
    beat: () => transport.heartbeat(who, beat),
    leave: () => transport.leave(who),
  }
}

/** The call must be refused with this code and what the catalogue says is next, and change nothing. */
export async function refused(
  { record }: Stage,
  code: ErrorCode,
  call: () => Promise<unknown>,
): Promise<HoldfastError> {
  const before = await record.dump()
  let answer: unknown
  let caught: unknown
  try {
    answer = await call()
  } catch (error) {
    caught = error
  }
  if (!(caught instanceof HoldfastError)) {
    throw new Error(`expected ${code}, got ${String(caught ?? JSON.stringify(answer))}`, { cause: caught })
  }
  const { next } = errorCatalogue[code]
  expect({ code: caught.code, next: caught.next }, caught.message).toEqual({ code, next })
  expect(caught.message.startsWith(`${code} `), caught.message).toBe(true)
  expect(await record.dump(), `${code} changed the record`).toEqual(before)
  return caught
}

/** The first item must be refused with this code, and nothing may have changed. */
export async function itemRefused(
  { record }: Stage,
  code: ErrorCode,
  call: () => Promise<readonly StepResult[]>,
): Promise<StepRefused> {
  const before = await record.dump()
  const [answer] = await call()
  if (answer === undefined || answer.ok) throw new Error(`expected ${code}, got ${JSON.stringify(answer)}`)
  expect(answer.code, JSON.stringify(answer)).toBe(code)
  expect(await record.dump(), `${code} changed the record`).toEqual(before)
  return answer
}

/** Says the same twice: the answers must be equal, and the second must change nothing. */
export async function sameAgain<Answer>({ record }: Stage, call: () => Promise<Answer>): Promise<Answer> {
  const first = await call()
  const before = await record.dump()
  expect(await call()).toEqual(first)
  expect(await record.dump(), 'the repeat changed the record').toEqual(before)
  return first
}
