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
  const { appendfsync, configOf } = await readAppendfsync(store)
  for (;;) {
    const reply = await functions.attest(presenter, lastLogId, appendfsync, presentedTo, configOf)
    if (!reply.more) return reply
  }
}

/** How a server writes, and which server that is: the next call may reach another one. */
interface Writing {
  readonly appendfsync: Appendfsync
  /** Its replication id; nothing where its rights forbid asking for either. */
  readonly configOf?: string
}

async function readAppendfsync(store: Store): Promise<Writing> {
  let replies: unknown[]
  try {
    replies = await store.pipeline([
      ['INFO', 'replication'],
      ['CONFIG', 'GET', 'append*'],
    ])
  } catch (error) {
    if (isHoldfastError(error) && !isDenial(error)) throw error
    return { appendfsync: 'unseen' }
  }
  const configOf = /master_replid:([0-9a-f]+)/.exec(String(replies[0]))?.[1] ?? ''
  return { appendfsync: policyOf(replies[1] as string[]), configOf }
}

function policyOf(config: readonly string[]): Appendfsync {
  const at = (name: string) => String(config[config.indexOf(name) + 1])
  const policy = at('appendfsync')
  if (at('appendonly') !== 'yes') return 'no'
  return policy === 'always' || policy === 'everysec' ? policy : 'no'
}
