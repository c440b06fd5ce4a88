import { HoldfastError } from './errors.js'

/** Of hosts and hubs. */
export const namePattern = /^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$/
/** Of every other id that a caller chooses. */
export const idPattern = /^[\x20-\x7e]{1,255}$/
/** What {@link namePattern} asks for, in words that follow what is wrong. */
export const nameForm = 'must match [a-z0-9._-], 1 to 63 long, alphanumeric at both ends'
/** What {@link idPattern} asks for. */
export const idForm = 'must be 1 to 255 bytes of printable ASCII'

const messagePattern = /^\d+-\d+$/
const deliveryPattern = /^(\d+-\d+)\.\d+$/
const attemptPattern = /^(\d+-\d+\.\d+)\/(\d+)$/

/** True for `[a-z0-9._-]`, 1 to 63, alphanumeric at both ends (contract section 7). Nothing is folded. */
export function isHostId(text: string): boolean {
  return namePattern.test(text)
}

/** True for a hub name, of the same form as a host id. */
export function isHubName(text: string): boolean {
  return namePattern.test(text)
}

/** True for printable ASCII, 1 to 255 bytes: every other id a caller chooses. */
export function isId(text: string): boolean {
  return idPattern.test(text)
}

/** Returns the host id, or throws INVALID_ARGUMENT. */
export function hostId(text: string): string {
  if (isHostId(text)) return text
  throw new HoldfastError('INVALID_ARGUMENT', `host ${JSON.stringify(text)} ${nameForm}`)
}

/** Returns the hub name, or throws INVALID_ARGUMENT. */
export function hubName(text: string): string {
  if (isHubName(text)) return text
  throw new HoldfastError('INVALID_ARGUMENT', `hub ${JSON.stringify(text)} ${nameForm}`)
}

/** Returns the id, or throws INVALID_ARGUMENT naming `what`. */
export function printableId(text: string, what: string): string {
  if (isId(text)) return text
  throw new HoldfastError('INVALID_ARGUMENT', `${what} ${JSON.stringify(text)} ${idForm}`)
}

export function isMessageId(text: string): boolean {
  return messagePattern.test(text)
}

export function isDeliveryId(text: string): boolean {
  return deliveryPattern.test(text)
}

/** Returns the delivery id, or throws INVALID_ARGUMENT. */
export function deliveryId(text: string): string {
  if (isDeliveryId(text)) return text
  throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(text)} is no delivery id (<message>.<n>)`)
}

/** Returns the message id, or throws INVALID_ARGUMENT. */
export function messageId(text: string): string {
  if (isMessageId(text)) return text
  throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(text)} is no message id (<ms>-<sequence>)`)
}

/** True for what a fence covers: `hub`, `host:<h>`, `conversation:<c>` or `session:<s>`. */
export function isFenceScope(text: string): boolean {
  if (text === 'hub') return true
  const [kind, name] = [text.slice(0, Math.max(0, text.indexOf(':'))), text.slice(text.indexOf(':') + 1)]
  if (kind === 'host') return isHostId(name)
  return (kind === 'conversation' || kind === 'session') && isId(name)
}

/** The message a delivery belongs to. */
export function messageOf(delivery: string): string {
  const found = deliveryPattern.exec(delivery)?.[1]
  if (found === undefined)
    throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(delivery)} is no delivery id`)
  return found
}

/** Splits `<delivery>/<n>`; undefined when it is none. */
export function parseAttemptId(text: string): { delivery: string; number: number } | undefined {
  const found = attemptPattern.exec(text)
  if (found?.[1] === undefined) return undefined
  return { delivery: found[1], number: Number(found[2]) }
}

/** Percent-encodes all but `[A-Za-z0-9._~:@+=,-]`, as names of keys and the log have it; input is printable ASCII. */
export function escapePart(part: string): string {
  return part.replace(/[^A-Za-z0-9._~:@+=,-]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
}

/** An id in a header: a blank is written `%20` and a percent sign `%25`, nothing else; percent-decoding gives it back. */
export function headerText(id: string): string {
  return id.replaceAll('%', '%25').replaceAll(' ', '%20')
}
