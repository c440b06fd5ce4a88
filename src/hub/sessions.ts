import { HoldfastError } from '../contract/errors.js'
import type { Page, PageOptions } from '../contract/hub.js'
import { printableId } from '../contract/ids.js'
import type { SessionReply, SessionView } from '../contract/session-views.js'
import type { SessionState } from '../contract/sessions.js'
import type { Functions } from '../record/functions.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'
import { sortedSetPage } from './sorted-sets.js'

/** @throws SESSION_NOT_FOUND for one never opened */
export async function readSession(reader: Reader, keys: Keys, id: string): Promise<SessionView> {
  const [view] = await readSessions(reader, keys, [printableId(id, 'session')])
  if (view === undefined) throw new HoldfastError('SESSION_NOT_FOUND', `session ${id} was never opened`)
  return view
}

/** Sessions by when they were first opened. */
export async function listSessions(
  reader: Reader,
  keys: Keys,
  page: PageOptions = {},
): Promise<Page<SessionView>> {
  const { members, cursor } = await sortedSetPage(reader, keys.sessions, page)
  const ids = members.map(({ member }) => member)
  return { entries: await readSessions(reader, keys, ids), ...present('cursor', cursor) }
}

async function readSessions(reader: Reader, keys: Keys, ids: readonly string[]): Promise<SessionView[]> {
  const rows = await reader.hashes(ids.map((id) => keys.session(id)))
  const counts = await reader.all(ids.map((id) => ['ZCARD', keys.sessionDeliveries(id)]))
  return ids.flatMap((id, at) => {
    const row = rows[at]
    return row?.has('host') ? [sessionView(id, row, Number(counts[at]))] : []
  })
}

function sessionView(id: string, row: ReadonlyMap<string, string>, unfinished: number): SessionView {
  const number = (field: string) => (row.has(field) ? Number(row.get(field)) : undefined)
  const flag = (field: string) => (row.has(field) ? row.get(field) === '1' : undefined)
  const state = (row.get('state') ?? 'open') as SessionState
  return {
    session: id,
    host: row.get('host') ?? '',
    scope: row.get('scope') ?? '',
    epoch: number('epoch') ?? 0,
    state,
    ...present('terminal', flag('terminal')),
    ...present('reason', row.get('close_reason')),
    ...present('drained', flag('drained')),
    ...present('abandoned', number('abandoned')),
    ...present('parent', row.get('parent')),
    crashes: number('crashes') ?? 0,
    restartBudget: number('restart_budget') ?? 0,
    ...present('openedAt', number('opened_at')),
    ...present('openedBy', row.get('opened_by')),
    ...present('closedAt', number('closed_at')),
    ...present('closedBy', row.get('closed_by')),
    ...present('missingAt', number('missing_at')),
    ...present('missingAttempt', row.get('missing_attempt')),
    ...present('rehomedAt', number('rehomed_at')),
    ...present('rehomedFrom', row.get('rehomed_from')),
    ...present('movingFrom', row.get('moving_from')),
    unfinished,
  }
}

/**
 * Flips a session's owner and takes its deliveries along. When a call is lost, or this process dies, the same
 * call again completes it, and so does the repair of obligations.
 * @throws SESSION_NOT_FOUND, EXECUTING, HOST_NOT_LIVE, SCOPE_MISMATCH
 */
export async function rehomeSession(
  functions: Functions,
  id: string,
  host: string,
  act: { readonly actor: string; readonly reason: string },
): Promise<SessionReply> {
  for (;;) {
    const { more, ...reply } = await functions.rehome(id, host, act.actor, act.reason)
    if (!more) return reply
  }
}
