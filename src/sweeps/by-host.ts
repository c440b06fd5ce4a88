import { isHoldfastError } from '../contract/errors.js'
import { hostNames } from '../hub/delivery-places.js'
import type { HostSweep } from '../record/sweep-functions.js'
import { type Run, type SweepInput, slicesAtMost, sumOf } from './sweep.js'

/** Hosts that are asked for at once whether they hold anything. */
const askedAtOnce = 200

/**
 * Runs a sweep of every host that holds anything, each from its beginning to its end; `idleToo`: of the others as well. A
 * run that is cut (by its bound, or a stop) goes on with the host where it was: the cursor is `<host> <cursor of the host>`.
 * A host that cannot be swept keeps none of the others from it: what it failed with is thrown when they are done.
 */
export async function sweepHosts(
  name: HostSweep,
  { hub, cursor, signal }: SweepInput,
  { idleToo = false }: { readonly idleToo?: boolean } = {},
): Promise<Run> {
  const { functions, reader, keys } = hub
  const [firstHost = '', firstCursor = ''] = cursor === '' ? [] : splitAt(cursor)
  const all = (await hostNames(reader, keys)).sort().filter((host) => host >= firstHost)
  const sum = sumOf()
  let slices = 0
  let failure: unknown
  for (let next = 0; next < all.length; next += askedAtOnce) {
    const some = all.slice(next, next + askedAtOnce)
    if (slices >= slicesAtMost || signal.aborted) return sum.run(`${some[0]} `)
    for (const host of idleToo ? some : await functions.busyHosts(some)) {
      let at = host === firstHost ? firstCursor : ''
      do {
        if (slices >= slicesAtMost || signal.aborted) return sum.run(`${host} ${at}`)
        slices += 1
        const swept = await functions.sweepHost(name, host, at).catch((error: unknown) => {
          if (isHoldfastError(error)) throw error
          failure ??= error
        })
        if (swept === undefined) break
        sum.add(swept)
        at = swept.cursor
      } while (at !== '')
    }
  }
  if (failure !== undefined) throw failure
  return sum.run('')
}

function splitAt(cursor: string): [string, string] {
  const blank = cursor.indexOf(' ')
  return blank < 0 ? [cursor, ''] : [cursor.slice(0, blank), cursor.slice(blank + 1)]
}
