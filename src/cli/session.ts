import type { Command } from 'commander'
import { z } from 'zod'
import type { HostView } from '../contract/host-views.js'
import type { HubCalls } from '../contract/hub.js'
import type { SessionReply, SessionView } from '../contract/session-views.js'
import { closeReasons, terminalOf } from '../contract/sessions.js'
import { withHub } from './context.js'
import { action, value } from './flags.js'
import { answer, fields, print, printTable, say } from './output.js'
import { type OnProgress, whileMeasured, withProgress } from './progress.js'
import { canonical } from './scopes.js'
import { isoTime, shortDuration } from './times.js'

const listSchema = z.object({
  limit: value.wholeNumber(1, 1000).optional(),
  cursor: value.text.optional(),
})
const showSchema = z.object({ id: value.id })
const openSchema = z.object({
  id: value.id,
  host: value.host,
  scope: value.text.min(1, 'names no folder'),
  restartBudget: value.wholeNumber(0, 1_000_000).optional(),
  parent: value.id.optional(),
})
const closeSchema = z.object({
  id: value.id,
  epoch: value.wholeNumber(0, Number.MAX_SAFE_INTEGER).optional(),
  reason: z.enum(closeReasons, { error: `must be one of ${closeReasons.join(', ')}` }),
  drained: value.flag,
  abandoned: value.wholeNumber(0, Number.MAX_SAFE_INTEGER).default(0),
})
const rehomeSchema = z.object({ id: value.id, host: value.host, reason: value.sentence })
const head = ['session', 'state', 'host', 'scope', 'epoch', 'crashes', 'unfinished', 'since', 'moving from']

/** `holdfast session ls|show|open|close|rehome`. */
export function addSession(program: Command): void {
  const session = program.command('session').description('addressable targets on hosts')
  addReading(session)
  session
    .command('open')
    .description('addressable at its host from now on, under a new session epoch')
    .argument('<id>', 'session id')
    .option('--host <host>', 'the host that owns it')
    .option('--scope <dir>', 'its directory; a relative one is made absolute here')
    .option('--restart-budget <n>', 'crashes after which one is terminal (as it was; 0 at first)')
    .option('--parent <id>', 'the session it is a child of; stated at its first opening')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(openSchema, async ({ id, scope, ...opening }, { settings, json }) => {
        const opened = await withHub(settings, (hub) =>
          hub.openSession(id, { ...opening, scope: canonical(scope), asOperator: true }, settings.actor),
        )
        answer(json, opened, printSession)
      }),
    )
  session
    .command('close')
    .description('not addressable any more: until it opens again, or for good')
    .argument('<id>', 'session id')
    .option('--reason <reason>', `one of ${closeReasons.join(', ')}; for a crash the record decides`)
    .option('--epoch <n>', 'what opening answered; the present one when absent')
    .option('--drained', 'nothing was under way any more')
    .option('--abandoned <n>', 'what was under way and was given up (0)')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(closeSchema, async ({ id, epoch, reason, ...closing }, { settings, json }) => {
        const closed = await withHub(settings, async (hub) =>
          hub.closeSession(
            id,
            {
              ...closing,
              reason,
              epoch: epoch ?? (await hub.session(id)).epoch,
              terminal: terminalOf(reason),
            },
            settings.actor,
          ),
        )
        answer(json, closed, printSession)
      }),
    )
  session
    .command('rehome')
    .description('another host owns it from now on, with its deliveries and child sessions')
    .argument('<id>', 'session id')
    .option('--host <host>', 'a host with a live node that serves its scope')
    .option('--reason <text>', 'why; kept on the row and in the log')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(rehomeSchema, async ({ id, host, reason }, { settings, json }) => {
        const act = { reason, actor: settings.actor }
        const moved = await withHub(settings, (hub) =>
          withProgress(`moving ${id}`, json, async (onProgress) => {
            const move = () => hub.rehome(id, host, act)
            return onProgress === undefined ? await move() : await moveShown(hub, { id, onProgress, move })
          }),
        )
        answer(json, moved, printSession)
      }),
    )
}

function addReading(session: Command): void {
  session
    .command('ls')
    .description('sessions by when they were first opened')
    .option('--limit <n>', 'at most so many (100)')
    .option('--cursor <cursor>', 'from the answer before')
    .action(
      action(listSchema, async (page, { settings, json }) => {
        const { entries, cursor } = await withHub(settings, (hub) => hub.sessionPage(page))
        answer(json, { sessions: entries, cursor }, () => {
          printTable('sessions', head, entries.map(rowOf))
          if (cursor !== undefined) say(`there are more: --cursor '${cursor}'`)
        })
      }),
    )
  session
    .command('show')
    .description('a session as recorded')
    .argument('<id>', 'session id')
    .action(
      action(showSchema, async ({ id }, { settings, json }) => {
        answer(json, await withHub(settings, (hub) => hub.session(id)), printView)
      }),
    )
}

function inHand(view: HostView | undefined): number {
  return (view?.entries ?? 0) + (view?.awaiting ?? 0)
}

/** What leaves the old host is what has moved; others may leave it too, so it is never more than was to move. */
async function moveShown(
  hub: HubCalls,
  { id, onProgress, move }: { id: string; onProgress: OnProgress; move: () => Promise<SessionReply> },
): Promise<SessionReply> {
  const { host, unfinished } = await hub.session(id)
  const there = async () => inHand(await hub.host(host))
  const first = await there()
  return await whileMeasured(onProgress, async () => unfinished - (first - (await there())), move)
}

function stateText({ state, terminal, reason }: SessionView | SessionReply): string {
  if (state !== 'closed') return state
  return `closed (${reason ?? ''}${terminal === true ? ', for good' : ''})`
}

function rowOf(view: SessionView) {
  const { session, host, scope, epoch, crashes, restartBudget, unfinished, movingFrom } = view
  const since = view.missingAt ?? view.closedAt ?? view.openedAt
  const age = since === undefined ? undefined : shortDuration(Date.now() - since)
  return [
    session,
    stateText(view),
    host,
    scope,
    epoch,
    `${crashes}/${restartBudget}`,
    unfinished,
    age,
    movingFrom,
  ]
}

function printSession(reply: SessionReply): void {
  print(
    fields([
      ['session', reply.session],
      ['state', stateText(reply)],
      ['host', reply.host],
      ['scope', reply.scope],
      ['epoch', reply.epoch],
      ['crashes', `${reply.crashes} of ${reply.restartBudget}`],
    ]),
  )
}

function printView(view: SessionView): void {
  const time = (at: number | undefined) => (at === undefined ? undefined : isoTime(at))
  print(
    fields([
      ['session', view.session],
      ['state', stateText(view)],
      ['host', view.host],
      ['scope', view.scope],
      ['epoch', view.epoch],
      ['crashes', `${view.crashes} of ${view.restartBudget}`],
      ['unfinished', view.unfinished],
      ['parent', view.parent],
      ['opened', time(view.openedAt)],
      ['opened by', view.openedBy],
      ['closed', time(view.closedAt)],
      ['closed by', view.closedBy],
      ['drained', view.drained === undefined ? undefined : view.drained ? 'yes' : 'no'],
      ['abandoned', view.abandoned],
      ['missing since', time(view.missingAt)],
      ['missing by', view.missingAttempt],
      ['rehomed', time(view.rehomedAt)],
      ['rehomed from', view.rehomedFrom],
      ['moving from', view.movingFrom],
    ]),
  )
}
