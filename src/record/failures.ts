import { HoldfastError, isErrorCode } from '../contract/errors.js'

/** First words by which a server says that it cannot work now, whatever the command. */
const refusals = new Set([
  'LOADING',
  'BUSY',
  'READONLY',
  'MASTERDOWN',
  'MISCONF',
  'OOM',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'NOREPLICAS',
  'UNKILLABLE',
  'UNBLOCKED',
  'MOVED',
])

/** First words by which a server says that this user may not do this. */
const denials = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM', 'DENIED'])
/** What a function answers whose user may not make a command of it. */
const deniedInFunction = /The user executing the script can't run this command/
const migrationNext = 'the slot of this hub is being moved: wait until it is whole again (docs/cluster.md)'
export const denialNext = 'check the user, the password and the rights it has on the Redis server'

/** What an error reply of the server means to a caller. Arguments are kept out: they may hold payloads. */
export function failureOfReply(text: string): Error {
  // Lua's error_reply puts ERR before an error of one word: a code without a detail.
  const [word = '', ...rest] = (/^ERR ([A-Z_]+)$/.exec(text)?.[1] ?? text).split(' ')
  if (isErrorCode(word)) return new HoldfastError(word, rest.length > 0 ? rest.join(' ') : undefined)
  if (word === 'ASK') return new HoldfastError('STORE_UNAVAILABLE', text, { next: migrationNext })
  if (refusals.has(word)) return new HoldfastError('STORE_UNAVAILABLE', text)
  if (denials.has(word) || deniedInFunction.test(text))
    return new HoldfastError('STORE_UNAVAILABLE', text, { next: denialNext })
  return new Error(text)
}

/** Where a slot is now, as a node of a Cluster says it: `MOVED 3999 127.0.0.1:7001`. */
export function movedTo(text: string): string | undefined {
  return /^MOVED \d+ (\S*:\d+)$/.exec(text)?.[1]
}

/** Why a connection failed, in words for people; undefined for what comes after the reason, and hides it. */
export function reasonOf({ message }: Error): string | undefined {
  if (message.startsWith("Stream isn't writeable")) return undefined
  if (message.startsWith('Unknown RESP type'))
    return 'what answers there does not speak the protocol of Redis'
  return message
}

/** True for refusals at connecting that no waiting will cure. */
export function isPermanent(text: string): boolean {
  return (
    denials.has(text.split(' ')[0] ?? '') ||
    text.startsWith('ERR DB index') ||
    text.startsWith('ERR invalid password') ||
    /certificate/i.test(text)
  )
}
