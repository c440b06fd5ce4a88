import { expect } from 'vitest'
import type { AttemptView } from '../../src/contract/delivery-views.js'
import type { MessageInput } from '../../src/contract/message.js'
import type { Outcome } from '../../src/contract/outcomes.js'
import type { ChildIdentity } from '../../src/node/executor.js'
import { type Mirror, openMirror } from '../../src/node/mirror.js'
import { freshPath, type RunningNode, type SomeOptions, startNode } from './nodes.js'
import { settlement, type TestNode, type TestRecord } from './record.js'
import type { TestServer } from './server.js'
import { until } from './until.js'

/** How far a process of node `a` on host `h1` came with one delivery before it ended without a word. */
export interface CrashOptions {
  /** `granted`: begun, without a start mark. `started` is the default. */
  readonly at?: 'granted' | 'started'
  /** Processes of its executor. */
  readonly children?: readonly ChildIdentity[]
  /** An outcome that it stored and did not send. */
  readonly unsent?: Outcome
  readonly message?: Partial<MessageInput>
}

/** What it left behind. */
export interface Crash {
  readonly mirror: string
  /** Of the delivery. */
  readonly id: string
  readonly attempt: string
  readonly grant: string
}

let grants = 0

/** One attempt that nobody concluded. With a file: of the same node, in one more process. */
export async function crashedAttempt(
  record: TestRecord,
  options: CrashOptions = {},
  file = freshPath('db'),
): Promise<Crash> {
  const { mirror, node } = await openProcess(record, file)
  const { deliveries } = await record.accept({ to: [{ host: 'h1' }], ...options.message })
  const claimed = (await record.deliverAll(node)).find(({ id }) => id === deliveries[0]?.id)
  if (claimed === undefined) throw new Error('the delivery was not handed out')
  const { id, epoch, message, payload } = claimed
  await mirror.storeCopies([{ delivery: id, epoch, message, payload }])
  grants += 1
  const grant = `crashed-${grants}`
  await mirror.mintGrant({ grant, delivery: id, epoch })
  const { attempt } = await record.begin(node, { id, epoch }, grant)
  if (options.at !== 'granted') await mirror.markStarted(grant, 1)
  for (const child of options.children ?? []) await mirror.recordChild(grant, child)
  if (options.unsent !== undefined) {
    const report = { key: `${grant}.outcome`, grant, delivery: id, attempt: 1 }
    await mirror.recordReport({ ...report, outcome: options.unsent, final: true })
  }
  await mirror.close()
  return { mirror: file, id, attempt, grant }
}

/** A later process begins the attempt again, and ends without a word: before or after it noted that. */
export async function crashedReplay(record: TestRecord, crash: Crash, noted = true): Promise<void> {
  const { mirror, node } = await openProcess(record, crash.mirror)
  const grant = mirror.recovery().grants.find((each) => each.grant === crash.grant)
  if (grant === undefined) throw new Error('the mirror does not hold the grant')
  const item = { id: crash.id, epoch: grant.epoch, grant: crash.grant, idempotent: true }
  const [answer] = await record.functions.begin(node, [item])
  if (!answer?.ok) throw new Error(`not begun again: ${JSON.stringify(answer)}`)
  if (noted) await mirror.markRestarted(crash.grant, 1, answer.epoch)
  await mirror.close()
}

/** What the mirror of a node that has ended still holds. */
export async function leftIn(
  record: TestRecord,
  { mirror: file, id }: Pick<Crash, 'mirror' | 'id'>,
): Promise<{ copy: boolean; grants: number; reports: number }> {
  const mirror = openMirror({ file, hub: record.name, host: 'h1', node: 'a' })
  const { grants, reports } = mirror.recovery()
  const left = { copy: mirror.copy(id) !== undefined, grants: grants.length, reports: reports.length }
  await mirror.close()
  return left
}

async function openProcess(record: TestRecord, file: string): Promise<{ mirror: Mirror; node: TestNode }> {
  const mirror = openMirror({ file, hub: record.name, host: 'h1', node: 'a' })
  return { mirror, node: await record.join('h1', 'a', mirror.incarnation, mirror.instance) }
}

/** The next process of the node, in this process. */
export function restart(
  server: TestServer,
  record: TestRecord,
  { mirror }: Pick<Crash, 'mirror'>,
  options: SomeOptions = {},
): Promise<RunningNode> {
  return startNode({ redis: server.url, hub: record.name, host: 'h1', node: 'a', ...options, mirror })
}

/** A later delivery of the host went through: what its node knew of at its start has had its chance. */
export async function workFlows(record: TestRecord, conversation = 'later'): Promise<void> {
  const { deliveries } = await record.accept({ conversation, to: [{ host: 'h1' }] })
  expect(await settlement(record, deliveries[0]?.id ?? '')).toBe('done')
}

export async function attemptsOf(
  record: TestRecord,
  { id }: Pick<Crash, 'id'>,
): Promise<readonly AttemptView[]> {
  return (await record.hub.delivery(id)).attempts
}

/** The first attempt, once so many reports called it unknown. */
export function unknownReports(
  record: TestRecord,
  crash: Pick<Crash, 'id'>,
  count: number,
): Promise<AttemptView> {
  return until(
    async () => {
      const [attempt] = await attemptsOf(record, crash)
      return (attempt?.unknownReports ?? 0) >= count ? attempt : undefined
    },
    { timeoutMs: 20_000, what: `${count} reports that ${crash.id}/1 is unknown` },
  )
}

/** The attempt that is done, once there is one. */
export function doneAttempt(record: TestRecord, crash: Pick<Crash, 'id'>): Promise<AttemptView> {
  return until(async () => (await attemptsOf(record, crash)).find(({ status }) => status === 'done'), {
    timeoutMs: 20_000,
    what: `an attempt of ${crash.id} done`,
  })
}
