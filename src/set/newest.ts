import { HoldfastError } from '../contract/errors.js'
import type { Page, PageOptions } from '../contract/hub.js'
import { naming } from '../contract/hub-set.js'
import type { Member, Members } from './members.js'

const entriesAtOnce = 100

/** One hub's page, as far as it has been taken. */
interface Source<Entry> {
  readonly member: Member
  /** Where its page began; undefined for the newest. */
  readonly from: string | undefined
  readonly page: Page<Entry>
  taken: number
}

/**
 * A page of a list of every hub that begins with the newest, as one list: whatever is on a page is newer than what the
 * next one has. On every hub the id of an entry begins with its time in ms, and a page may begin after any id. The
 * cursor is `<hub>|<id>` for each hub that has more, between commas.
 * @throws INVALID_ARGUMENT for a cursor of another list
 */
export async function newestOfAll<Entry extends { readonly id: string }>(
  members: Members,
  { cursor, limit = entriesAtOnce }: PageOptions,
  read: (member: Member, page: PageOptions) => Promise<Page<Entry>>,
): Promise<Page<Entry>> {
  const sources = await Promise.all(
    placesOf(members, cursor).map(async ({ member, from }): Promise<Source<Entry>> => {
      const page = await naming(member.hub, () => read(member, { cursor: from, limit }))
      return { member, from, page, taken: 0 }
    }),
  )
  const entries: Entry[] = []
  while (entries.length < limit) {
    const next = newest(sources)
    const entry = next?.page.entries[next.taken]
    // What a hub has not looked at yet may be newer than what the others have.
    if (next === undefined || entry === undefined) break
    entries.push(entry)
    next.taken += 1
  }
  const more = sources.flatMap((source) => {
    const place = placeAfter(source)
    return place === undefined ? [] : [`${source.member.hub}|${place}`]
  })
  return { entries, ...(more.length === 0 ? {} : { cursor: more.join(',') }) }
}

/** The source with the newest of what comes next: of two equal ones, that which has an entry. */
function newest<Entry extends { readonly id: string }>(
  sources: readonly Source<Entry>[],
): Source<Entry> | undefined {
  let found: Source<Entry> | undefined
  for (const source of sources) {
    const time = nextTime(source)
    if (time === undefined) continue
    const best = found === undefined ? undefined : nextTime(found)
    const hasEntry = source.taken < source.page.entries.length
    if (best === undefined || time > best || (time === best && hasEntry && !isAtEntry(found))) found = source
  }
  return found
}

function isAtEntry<Entry>(source: Source<Entry> | undefined): boolean {
  return source !== undefined && source.taken < source.page.entries.length
}

/** Undefined where the hub has nothing more. */
function nextTime<Entry extends { readonly id: string }>({ page, taken }: Source<Entry>): number | undefined {
  const id = page.entries[taken]?.id ?? page.cursor
  return id === undefined ? undefined : timeIn(id)
}

/** The time in an id, whether it is qualified by its hub or not. */
function timeIn(id: string): number {
  return Number.parseInt(id.slice(id.indexOf(':') + 1), 10)
}

/** Where the hub's next page begins; undefined where there is none. */
function placeAfter<Entry extends { readonly id: string }>({
  page,
  taken,
  from,
}: Source<Entry>): string | undefined {
  if (taken === page.entries.length) return page.cursor
  const last = page.entries[taken - 1]?.id
  return last === undefined ? (from ?? '') : last.slice(last.indexOf(':') + 1)
}

/** The hubs that have more, and from where on. @throws INVALID_ARGUMENT */
function placesOf(
  members: Members,
  cursor: string | undefined,
): { readonly member: Member; readonly from: string | undefined }[] {
  if (cursor === undefined) return members.all.map((member) => ({ member, from: undefined }))
  return cursor.split(',').map((part) => {
    const bar = part.indexOf('|')
    const member = members.all.find(({ hub }) => hub === part.slice(0, Math.max(0, bar)))
    if (member !== undefined) return { member, from: part.slice(bar + 1) || undefined }
    throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(cursor)} is no cursor of this set`, {
      current: cursor,
      next: 'take the cursor from the page before, with the same set of hubs',
    })
  })
}
