import { HoldfastError } from '../contract/errors.js'
import type { Page, PageOptions } from '../contract/hub.js'
import { naming } from '../contract/hub-set.js'
import type { Member, Members } from './members.js'

const entriesAtOnce = 100

/** Where a page of a set begins: a hub, and the place in its own list. */
interface Place {
  readonly at: number
  readonly cursor: string | undefined
}

/**
 * A page of a list of every hub, hub after hub in the order of the set. The cursor is `<hub>|<cursor of that hub>`.
 * @throws INVALID_ARGUMENT for a cursor of another list
 */
export async function pageOfAll<Entry>(
  members: Members,
  { cursor, limit }: PageOptions = {},
  read: (member: Member, page: PageOptions) => Promise<Page<Entry>>,
): Promise<Page<Entry>> {
  const entries: Entry[] = []
  const most = limit ?? entriesAtOnce
  let { at, cursor: inner } = placeOf(members, cursor)
  for (;;) {
    const member = members.all[at]
    if (member === undefined) return { entries }
    const page = {
      cursor: inner,
      limit: most - entries.length,
    }
    const found = await naming(member.hub, () => read(member, page))
    entries.push(...found.entries)
    if (found.cursor !== undefined) return { entries, cursor: `${member.hub}|${found.cursor}` }
    at += 1
    inner = undefined
    const next = members.all[at]
    if (next === undefined) return { entries }
    if (entries.length >= most) return { entries, cursor: `${next.hub}|` }
  }
}

/** The hub that a page is of, and its own cursor; the first one where none is given. @throws INVALID_ARGUMENT */
export function placeOf({ names }: Members, cursor: string | undefined): Place {
  if (cursor === undefined) return { at: 0, cursor: undefined }
  const bar = cursor.indexOf('|')
  const at = names.indexOf(cursor.slice(0, Math.max(0, bar)))
  if (at < 0) {
    throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(cursor)} is no cursor of this set`, {
      current: cursor,
      next: 'take the cursor from the page before, with the same set of hubs',
    })
  }
  return { at, cursor: cursor.slice(bar + 1) || undefined }
}
