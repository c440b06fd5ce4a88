import type { BulkReply, OperatorReply } from '../contract/delivery-views.js'
import { HoldfastError, isHoldfastError, isStoreAway } from '../contract/errors.js'
import type { BulkFilter, BulkOptions, DeliveryPage, OperatorAct } from '../contract/hub.js'
import { present } from '../record/replies.js'

const actsAtOnce = 16

/**
 * One act on each delivery of a page that the filter names. What is refused is answered by id; harmless to
 * repeat, since an act on what was acted on is refused.
 */
export async function actOnMany(
  parts: {
    list(filter: BulkFilter, options: BulkOptions): Promise<DeliveryPage>
    act(act: OperatorAct, id: string, options: BulkOptions): Promise<OperatorReply>
  },
  act: OperatorAct,
  filter: BulkFilter,
  options: BulkOptions,
): Promise<BulkReply> {
  if (options.reason === '') throw new HoldfastError('INVALID_ARGUMENT', 'a reason is required')
  const page = await parts.list(filter, options)
  const matched = page.deliveries
  const refused: BulkReply['refused'][number][] = []
  let done = 0
  const queue = options.dryRun === true ? [] : [...matched]
  async function work(): Promise<void> {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      try {
        await parts.act(act, next.id, options)
        done += 1
      } catch (error) {
        if (!isHoldfastError(error) || isStoreAway(error)) throw error
        refused.push({ id: next.id, code: error.code, detail: error.message })
      }
    }
  }
  await Promise.all(Array.from({ length: actsAtOnce }, work))
  return { matched: matched.length, done, refused, ...present('cursor', page.cursor) }
}
