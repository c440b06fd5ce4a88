import type { Page, PageOptions } from './hub.js'

/** All entries of a list that is read by pages. */
export async function allOf<Entry>(page: (options: PageOptions) => Promise<Page<Entry>>): Promise<Entry[]> {
  const found: Entry[] = []
  for (let cursor: string | undefined; ; ) {
    const { entries, cursor: next } = await page({ cursor, limit: 1000 })
    found.push(...entries)
    if (next === undefined) return found
    cursor = next
  }
}
