import { HoldfastError } from '../../contract/errors.js'
import { headerText } from '../../contract/ids.js'
import type { Attempt } from '../executor.js'

const ours = /^(?:content-type|idempotency-key|traceparent|holdfast-.*)$/i

/** Whoever sends headers of their own along may set none of these. @throws INVALID_ARGUMENT */
export function refuseOurHeaders(headers: Readonly<Record<string, string>>): void {
  const name = Object.keys(headers).find((each) => ours.test(each))
  if (name !== undefined) throw new HoldfastError('INVALID_ARGUMENT', `header ${name} is set by the executor`)
}

/**
 * The context of an attempt as HTTP headers. In every Holdfast header a blank is written `%20` and a percent sign
 * `%25`, nothing else: percent-decoding gives the id back, and no parser on the way trims it.
 */
export function attemptHeaders(attempt: Attempt): Record<string, string> {
  const { message, target } = attempt
  return {
    'content-type': message.contentType?.trim() || 'application/octet-stream',
    'idempotency-key': attempt.id,
    'holdfast-attempt': headerText(attempt.id),
    'holdfast-delivery': headerText(attempt.deliveryId),
    'holdfast-attempt-number': String(attempt.number),
    'holdfast-epoch': String(attempt.epoch),
    'holdfast-message': headerText(message.id),
    'holdfast-conversation': headerText(message.conversation),
    'holdfast-sender': headerText(message.sender),
    'holdfast-hub': headerText(attempt.hub),
    'holdfast-host': headerText(attempt.host),
    'holdfast-node': headerText(attempt.node),
    'holdfast-sha256': message.sha256,
    ...(attempt.replay && { 'holdfast-replay': '1' }),
    ...(target.session !== undefined && { 'holdfast-session': headerText(target.session) }),
    ...(message.parent !== undefined && { 'holdfast-parent': headerText(message.parent) }),
  }
}
