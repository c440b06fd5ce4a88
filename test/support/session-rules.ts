import { expect } from 'vitest'
import { unescapePart } from '../../src/record/keys.js'
import { type Dump, expectSame } from './record.js'

type Row = Readonly<Record<string, string>>

const isOpen = (row: Row) => row['attempt_status'] === 'executing'
const isSettled = (row: Row) =>
  row['state'] === 'failed' || ['done', 'terminal'].includes(row['attempt_status'] ?? '')
const isMovable = (row: Row) => !isSettled(row) && !isOpen(row) && row['state'] !== 'unknown'

function membersOf(dump: Dump, key: string): string[] {
  const found = dump[key]
  if (found?.type === 'zset') return Object.keys(found.value)
  return found?.type === 'set' ? [...found.value] : []
}

/**
 * What sessions list is what their deliveries say: the unfinished ones in the order they were made, those with
 * an open attempt, an obligation exactly while a move is under way, and after it everything that can move at home.
 */
export function checkSessions(dump: Dump, exempt: ReadonlySet<string>): void {
  const rows = new Map<string, [string, Row][]>()
  for (const [key, value] of Object.entries(dump)) {
    const session = key.startsWith(':delivery:') && value.type === 'hash' ? value.value['session'] : undefined
    if (session === undefined || value.type !== 'hash') continue
    const id = key.slice(':delivery:'.length)
    if (!exempt.has(id)) rows.set(session, [...(rows.get(session) ?? []), [id, value.value]])
  }
  const owed = new Set(membersOf(dump, ':obligations'))
  for (const [key, value] of Object.entries(dump)) {
    if (!key.startsWith(':session:') || value.type !== 'hash') continue
    const part = key.slice(':session:'.length)
    const [session, mine] = [unescapePart(part), rows.get(unescapePart(part)) ?? []]
    const idsOf = (test: (row: Row) => boolean) => mine.filter(([, row]) => test(row)).map(([id]) => id)
    const listed = membersOf(dump, `:session_deliveries:${part}`).filter((id) => !exempt.has(id))
    expectSame(
      listed,
      idsOf((row) => !isSettled(row)),
      `unfinished deliveries of session ${session}`,
    )
    const open = membersOf(dump, `:session_attempts:${part}`).filter((id) => !exempt.has(id))
    expectSame(open, idsOf(isOpen), `open attempts of session ${session}`)
    const { host, moving_from } = value.value
    expect(owed.has(`session:${session}`), `the obligation of session ${session}`).toBe(
      moving_from !== undefined,
    )
    if (moving_from !== undefined) continue
    const away = mine.filter(([, row]) => isMovable(row) && row['host'] !== host && !isLeftBehind(row))
    expectSame(
      away.map(([id]) => id),
      [],
      `deliveries of session ${session} that are not on ${host}`,
    )
  }
}

/** Held because its tries are used up, on an attempt that stayed where it ran: a release takes it home. */
function isLeftBehind(row: Row): boolean {
  return row['state'] === 'held' && row['held_reason'] === 'redrive_exhausted'
}
