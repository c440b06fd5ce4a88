import { HoldfastError } from '../contract/errors.js'
import type { PageOptions } from '../contract/hub.js'
import type { Reader } from '../record/reader.js'

const entriesAtOnce = 200

/** At most this many on a page. @throws INVALID_ARGUMENT */
export function pageLimit({ limit = 100 }: PageOptions): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1000) return limit
  throw new HoldfastError('INVALID_ARGUMENT', `limit must be a whole number from 1 to 1000, not ${limit}`)
}

export interface SortedSetPage {
  readonly members: readonly { readonly member: string; readonly score: number; readonly position: string }[]
  readonly end: boolean
}

/** Members after `<score> <member>`: ranks would shift under the reader, and many may share a score. */
export async function readSortedSet(reader: Reader, key: string, after: string): Promise<SortedSetPage> {
  // A member may hold blanks: the first one ends the score.
  const end = after.indexOf(' ')
  const [score, last] = end < 0 ? ['', ''] : [after.slice(0, end), after.slice(end + 1)]
  for (let offset = 0; ; offset += entriesAtOnce) {
    const command = [
      'ZRANGEBYSCORE',
      key,
      score || '-inf',
      '+inf',
      'WITHSCORES',
      'LIMIT',
      offset,
      entriesAtOnce,
    ]
    const reply = await reader.strings(command)
    const members = Array.from({ length: reply.length / 2 }, (_, at) => ({
      member: reply[2 * at] ?? '',
      score: reply[2 * at + 1] ?? '',
    }))
    const fresh = members.filter((each) => each.score !== score || each.member > last)
    const end = members.length < entriesAtOnce
    if (fresh.length === 0 && !end) continue
    return {
      members: fresh.map((each) => ({
        member: each.member,
        score: Number(each.score),
        position: `${each.score} ${each.member}`,
      })),
      end,
    }
  }
}

const setCursor = /^\d+(?:\.\d+)? [\x20-\x7e]+$/

/** One page of a sorted set whose members are ids, by score and member. */
export async function sortedSetPage(
  reader: Reader,
  key: string,
  page: PageOptions,
): Promise<{ members: SortedSetPage['members']; cursor: string | undefined }> {
  if (page.cursor !== undefined && !setCursor.test(page.cursor)) throw notOurs(page.cursor)
  const limit = pageLimit(page)
  const members: SortedSetPage['members'][number][] = []
  for (let position = page.cursor ?? ''; ; ) {
    const slice = await readSortedSet(reader, key, position)
    members.push(...slice.members)
    if (members.length > limit) {
      const kept = members.slice(0, limit)
      return { members: kept, cursor: kept.at(-1)?.position }
    }
    if (slice.end) return { members, cursor: undefined }
    position = members.at(-1)?.position ?? position
  }
}

export function notOurs(cursor: string): HoldfastError {
  return new HoldfastError('INVALID_ARGUMENT', `cursor ${JSON.stringify(cursor)} is none of ours`)
}
