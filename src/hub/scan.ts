import type { Reader } from '../record/reader.js'

const keysASlice = 1000

/** Names of keys under a prefix, a slice at a time; each at least once while it is there. */
export async function* scanKeys(reader: Reader, prefix: string): AsyncGenerator<string[], void> {
  const match = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`
  let cursor = '0'
  do {
    const [next, found] = (await reader.one(['SCAN', cursor, 'MATCH', match, 'COUNT', keysASlice])) as [
      string,
      string[],
    ]
    cursor = String(next)
    if (found.length > 0) yield found.map(String)
  } while (cursor !== '0')
}

/** Cuts a list into pieces. */
export function* piecesOf<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let first = 0; first < items.length; first += size) yield items.slice(first, first + size)
}
