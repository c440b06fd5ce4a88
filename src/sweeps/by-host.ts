import { hostNames } from '../hub/delivery-pages.js'
import type { HostSweep } from '../record/sweep-functions.js'
import { type Run, type SweepParts, slicesAtMost, sumOf } from './sweep.js'

/**
 * Runs a sweep of every host, each from its beginning to its end. A run that is cut (by its bound, or a stop) goes on
 * with the host where it was: the cursor is `<host> <cursor of the host>`.
 */
export async function sweepHosts(name: HostSweep, { parts, cursor, signal }: SweepParts): Promise<Run> {
  const { functions, reader, keys } = parts
  const hosts = (await hostNames(reader, keys)).sort()
  const [firstHost = '', firstCursor = ''] = cursor === '' ? [] : splitAt(cursor)
  const sum = sumOf()
  let slices = 0
  for (const host of hosts) {
    if (host < firstHost) continue
    let at = host === firstHost ? firstCursor : ''
    do {
      if (slices >= slicesAtMost || signal.aborted) return sum.run(`${host} ${at}`)
      const swept = await functions.sweepHost(name, host, at)
      sum.add(swept)
      at = swept.cursor
      slices += 1
    } while (at !== '')
  }
  return sum.run('')
}

function splitAt(cursor: string): [string, string] {
  const blank = cursor.indexOf(' ')
  return blank < 0 ? [cursor, ''] : [cursor.slice(0, blank), cursor.slice(blank + 1)]
}
