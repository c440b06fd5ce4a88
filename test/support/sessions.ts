import type { Outcome } from '../../src/contract/outcomes.js'
import type { SessionReply } from '../../src/contract/session-views.js'
import type { SessionClosing, SessionOpening } from '../../src/contract/sessions.js'
import type { ClaimedDelivery, StepResult } from '../../src/contract/steps.js'
import type { OpenRecord, TestNode } from './record.js'

export const scope = '/srv/agents'

interface Open {
  readonly id: string
  readonly epoch: number
  readonly attempt: string
  readonly grant: string
}

/** What tests do with sessions, over one record. */
export interface SessionTools {
  /** Opens a session: on host `a`, as an operator, unless told otherwise. */
  open(id?: string, opening?: Partial<SessionOpening>, operator?: boolean): Promise<SessionReply>
  /** Closes one under its present epoch: a reload, unless told otherwise. */
  close(id?: string, closing?: Partial<SessionClosing>): Promise<SessionReply>
  /** A node registered for the scope of the sessions. */
  join(host: string, node?: string, incarnation?: number, scopes?: readonly string[]): Promise<TestNode>
  /** Accepts messages to a session; answers the delivery ids. */
  send(count?: number, session?: string, conversation?: string): Promise<string[]>
  /** Accepts one to a session, delivers and begins it. */
  begin(node: TestNode, session?: string, conversation?: string): Promise<Open>
  /** Reports under a key of its own. */
  report(
    open: Open,
    outcome: Outcome,
    by: TestNode,
    more?: { key?: string; ended?: boolean },
  ): Promise<StepResult>
  /** As if nothing had been heard of this process for long. */
  silence(node: TestNode): Promise<void>
  rehome(id?: string, host?: string): Promise<SessionReply>
  row(id?: string): Promise<Record<string, string>>
  unknownList(): Promise<string[]>
}

export const result: Outcome = { kind: 'result', result: '{"n":1.10}' }
export const notSent: Outcome = { kind: 'not_sent', errorCode: 'busy' }
export const unknown: Outcome = { kind: 'outcome_unknown', errorCode: 'timeout' }
export const terminal: Outcome = { kind: 'terminal', errorCode: 'gone', errorJson: '{"why":1}' }
export const targetMissing: Outcome = { kind: 'terminal', errorCode: 'target_session_missing' }

/** The claimed delivery of this id, which must be there. */
export function the(claimed: readonly ClaimedDelivery[], id: string | undefined): ClaimedDelivery {
  const found = claimed.find((each) => each.id === id)
  if (found === undefined) throw new Error(`${id} is not among ${claimed.map((each) => each.id).join(' ')}`)
  return found
}

let unique = 0

export function sessionTools(record: OpenRecord): SessionTools {
  const { functions, keys } = record

  async function row(id = 's'): Promise<Record<string, string>> {
    const words = (await record.send('HGETALL', keys.session(id))) as string[]
    return Object.fromEntries(words.flatMap((word, at) => (at % 2 ? [] : [[word, words[at + 1] ?? '']])))
  }

  async function send(count = 1, session = 's', conversation = 'c1'): Promise<string[]> {
    return record.acceptMany(count, { conversation, to: [{ session }] })
  }

  return {
    open: (id = 's', opening = {}, operator = true) =>
      functions.openSession(id, { host: 'a', scope, asOperator: operator, ...opening }, 'kim'),
    close: async (id = 's', closing = {}) => {
      const epoch = Number((await row(id))['epoch'])
      const reload = { reason: 'reload', terminal: false, drained: true, abandoned: 0 } as const
      return functions.closeSession(id, { epoch, ...reload, ...closing }, 'kim')
    },
    join: async (host, node = 'n1', incarnation = 1, scopes = [scope]) => {
      const who = { host, node, incarnation, request: 0 }
      await functions.join(who, `i${incarnation}`, scopes, '0-0')
      return who
    },
    send,
    begin: async (node, session, conversation) => {
      const [id] = await send(1, session, conversation)
      return record.begin(node, the(await record.deliverAll(node), id))
    },
    report: async ({ attempt, grant }, outcome, by, { key, ended } = {}) => {
      unique += 1
      const item = { id: attempt, grant, key: key ?? `report-${unique}`, outcome, ended }
      const [answer] = await functions.report(by, [item])
      if (answer === undefined) throw new Error('a report was not answered')
      return answer
    },
    silence: async ({ host, node }) => {
      await record.send('HSET', keys.node(host, node), 'heartbeat_at', 1)
      await record.send('ZADD', keys.nodes, 1, `${host}/${node}`)
    },
    rehome: async (id = 's', host = 'b') => {
      for (;;) {
        const { more, ...reply } = await functions.rehome(id, host, 'kim', 'the machine is sold')
        if (!more) return reply
      }
    },
    row,
    unknownList: async () => (await record.send('ZRANGE', keys.unknown, 0, -1)) as string[],
  }
}
