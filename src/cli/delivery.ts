import type { Command } from 'commander'
import { z } from 'zod'
import type {
  AttemptView,
  DeliveryView,
  OperatorReply,
  TimelineEntry,
  WhyReply,
} from '../contract/delivery-views.js'
import type { DeliveryPage } from '../contract/hub.js'
import { actOnAll, bulkFlags, liveStates, problemOfChoice } from './bulk.js'
import { withHub } from './context.js'
import { exitCodes } from './failure.js'
import { action, value } from './flags.js'
import { answer, type Cell, fields, heading, print, printTable, say, table } from './output.js'
import { isoTime, shortDuration } from './times.js'

const listSchema = z.object({
  host: value.host.optional(),
  state: z
    .enum(liveStates, { error: `must be one of ${liveStates.join(', ')}; finished ones: message show` })
    .optional(),
  cursor: value.text.optional(),
  limit: value.wholeNumber(1, 1000).optional(),
})
const oneSchema = z.object({ id: value.deliveryId })
const resolveSchema = z.object({
  id: value.deliveryId,
  as: z.enum(['queued', 'failed'], { error: 'must be queued or failed; of an attempt: attempt resolve' }),
  evidence: value.sentence,
})
const actSchema = z
  .object({ id: value.deliveryId.optional(), reason: value.sentence, ...bulkFlags })
  .refine(({ id, ...flags }) => problemOfChoice(id, flags) === undefined, {
    path: ['id'],
    when: () => true,
    error: ({ input }) => {
      const { id, ...flags } = input as { id?: string } & Parameters<typeof problemOfChoice>[1]
      return problemOfChoice(id, flags)
    },
  })

/** What an operator may do with one delivery: the hub's call, and what it means. */
const acts = {
  release: { call: 'release', meaning: 'held to queued; it passes the holds that stand now, once' },
  reject: { call: 'reject', meaning: 'held to failed' },
  hold: { call: 'holdDelivery', meaning: 'an idle delivery to the held queue' },
  cancel: { call: 'cancel', meaning: 'an idle or held delivery to failed; it will not run' },
} as const

/** `holdfast delivery ls|show|why|release|reject|hold|cancel|resolve`. */
export function addDelivery(program: Command): void {
  const delivery = program.command('delivery').description('deliveries')
  delivery
    .command('ls')
    .description('deliveries in a live state, by host')
    .option('--host <host>', 'of this host alone')
    .option('--state <state>', `one of ${liveStates.join(', ')}`)
    .option('--cursor <cursor>', 'from the page before')
    .option('--limit <n>', 'at most this many, 1 to 1000 (100)')
    .action(
      action(listSchema, async (filter, { settings, json }) => {
        answer(json, await withHub(settings, (hub) => hub.deliveries(filter)), printPage)
      }),
    )
  delivery
    .command('show')
    .description('one delivery: its fields, attempts and timeline')
    .argument('<id>', 'delivery id')
    .action(
      action(oneSchema, async ({ id }, { settings, json }) => {
        answer(json, await withHub(settings, (hub) => hub.delivery(id)), printDelivery)
      }),
    )
  delivery
    .command('why')
    .description('why a delivery is where it is')
    .argument('<id>', 'delivery id')
    .action(
      action(oneSchema, async ({ id }, { settings, json }) => {
        answer(json, await withHub(settings, (hub) => hub.why(id)), printWhy)
      }),
    )
  for (const verb of ['release', 'reject', 'hold', 'cancel'] as const) addAct(delivery, verb)
  addResolve(delivery)
}

function addResolve(delivery: Command): void {
  delivery
    .command('resolve')
    .description('decide about a delivery whose copy is in doubt, with evidence; irreversible')
    .argument('<id>', 'delivery id')
    .option('--as <state>', 'queued (hand it out again) or failed')
    .option('--evidence <text>', 'how it is known; kept')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(resolveSchema, async ({ id, ...said }, { settings, json }) => {
        answer(
          json,
          await withHub(settings, (hub) => hub.resolveDelivery(id, said, settings.actor)),
          printActed,
        )
      }),
    )
}

function addAct(delivery: Command, verb: keyof typeof acts): void {
  const { call, meaning } = acts[verb]
  delivery
    .command(verb)
    .description(meaning)
    .argument('[id]', 'delivery id; without one, all that --state and what narrows it name')
    .option('--state <state>', `all in this state: one of ${liveStates.join(', ')}`)
    .option('--host <host>', 'of these, those of this host')
    .option('--conversation <id>', 'of these, those of this conversation')
    .option('--session <id>', 'of these, those of this session')
    .option('--because <text>', 'of these, those with a reason that begins so, such as poison')
    .option('--dry-run', 'count them, and change nothing')
    .option('--reason <text>', 'why; kept on the row and in the log')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(actSchema, async ({ id, reason, ...flags }, { settings, json }) => {
        const act = { reason, actor: settings.actor }
        if (id === undefined) {
          return await withHub(settings, (hub) => actOnAll(hub, verb, { flags, act, json }))
        }
        answer(json, await withHub(settings, (hub) => hub[call](id, act)), printActed)
        return exitCodes.ok
      }),
    )
}

/** The columns of a list of deliveries. */
export const deliveryHead = [
  'delivery',
  'state',
  'host',
  'session',
  'conversation',
  'owner',
  'epoch',
  'attempts',
  'reason',
] as const

/** One delivery in such a list. */
export function deliveryRow(view: DeliveryView): Cell[] {
  const { id, state, host, session, conversation, owner, epoch, attempts } = view
  return [id, state, host, session, conversation, owner, epoch, attempts.length, reasonOf(view)]
}

function reasonOf(view: DeliveryView): string | undefined {
  if (view.reason !== undefined) return view.reason
  if (view.parkedBy !== undefined) return `parked by ${view.parkedBy}`
  const last = view.attempts.at(-1)
  if (last === undefined) return undefined
  return last.status === 'executing' && last.unknownAt !== undefined
    ? `unknown: ${last.unknownReason ?? ''}`
    : last.status
}

function printPage(page: DeliveryPage): void {
  printTable('live deliveries', deliveryHead, page.deliveries.map(deliveryRow))
  if (page.cursor !== undefined) say(`there is more: --cursor '${page.cursor}'`)
}

function printDelivery(view: DeliveryView): void {
  print(
    fields([
      ['delivery', view.id],
      ['state', view.state],
      ['reason', view.reason],
      ['host', view.host],
      ['session', view.session],
      ['conversation', view.conversation],
      ['message', view.message],
      ['epoch', view.epoch],
      ['owner', view.owner],
      ['incarnation', view.incarnation],
      ['parked by', view.parkedBy],
      ['takeovers', view.takeovers],
      ['settled', view.settledAt === undefined ? undefined : isoTime(view.settledAt)],
    ]),
  )
  for (const attempt of view.attempts) print(`\n${heading(`attempt ${attempt.id}`)}\n${attemptText(attempt)}`)
  print(`\n${heading('timeline')}\n${timelineText(view.timeline)}`)
}

function attemptText(attempt: AttemptView): string {
  const { begunAt, settledAt } = attempt
  return fields([
    ['status', attempt.status],
    ['node', `${attempt.node}, incarnation ${attempt.incarnation}`],
    ['begun', isoTime(begunAt)],
    ['settled', settledAt && `${isoTime(settledAt)}, after ${shortDuration(settledAt - begunAt)}`],
    ['outcome', attempt.outcome],
    ['result', attempt.result],
    ['error', attempt.errorCode],
    ['particulars', attempt.errorJson],
    ['unknown since', attempt.unknownAt && isoTime(attempt.unknownAt)],
    ['unknown because', attempt.unknownReason],
    ['unknown reports', attempt.unknownReports],
    ['begun again', attempt.replayedAt && isoTime(attempt.replayedAt)],
    ['late reports', attempt.lateReports],
    ['resolved by', attempt.resolvedBy],
    ['evidence', attempt.evidence],
  ])
}

function timelineText(timeline: readonly TimelineEntry[]): string {
  const rows = timeline.map(({ at, what }, index) => {
    const before = timeline[index - 1]
    return [isoTime(at), before === undefined ? undefined : `+${shortDuration(at - before.at)}`, what]
  })
  return table(['time', 'after', 'what'], rows)
}

function printActed(done: OperatorReply): void {
  print(
    fields([
      ['delivery', done.id],
      ['state', done.state],
      ['epoch', done.epoch],
    ]),
  )
}

function printWhy(why: WhyReply): void {
  print(
    fields([
      ['delivery', why.id],
      ['state', why.state],
      ['why', why.reason],
      ['detail', why.detail],
      ['host', why.host],
      ['owner', why.owner],
      ['epoch', why.epoch],
      ['attempts', why.attempts],
    ]),
  )
}
