import { isHoldfastError } from '../contract/errors.js'
import type { Store } from './connections.js'
import { isDenial } from './durability.js'
import type { Functions } from './functions.js'
import type { Appendfsync, Attestation } from './sweep-functions.js'

/**
 * Takes part in proving that the server is not behind what was seen of its record, as far as that goes now: presents the
 * last log entry that the caller saw (once to each server: `presentedTo` is the replication id of its last answer), tells how the server writes, and sets aside what has to be.
 * @throws STORE_UNAVAILABLE, DEADLINE_EXCEEDED, STORE_UNKNOWN
 */
export async function attestRecord(
  store: Store,
  functions: Pick<Functions, 'attest'>,
  presenter: string,
  lastLogId: string,
  presentedTo?: string,
): Promise<Attestation> {
  const appendfsync = await readAppendfsync(store)
  for (;;) {
    const reply = await functions.attest(presenter, lastLogId, appendfsync, presentedTo)
    if (!reply.more) return reply
  }
}

async function readAppendfsync(store: Store): Promise<Appendfsync> {
  let reply: string[]
  try {
    reply = (await store.call(['CONFIG', 'GET', 'append*'])) as string[]
  } catch (error) {
    if (isHoldfastError(error) && !isDenial(error)) throw error
    return 'unseen'
  }
  const at = (name: string) => String(reply[reply.indexOf(name) + 1])
  const policy = at('appendfsync')
  if (at('appendonly') !== 'yes') return 'no'
  return policy === 'always' || policy === 'everysec' ? policy : 'no'
}
