// @ts-check
// What the acts ask of the record.

/**
 * @typedef {import('./cluster.mjs').Cluster} Cluster
 * @typedef {import('./cluster.mjs').NodeProcess} NodeProcess
 * @typedef {import('./judge.mjs').Sent} Sent
 * @typedef {import('./story.mjs').Story} Story
 * @typedef {import('holdfast').DeliveryView} DeliveryView
 */

/** Who sends, and who operates. */
export const actor = 'demo'
/** How long an act waits for what it claims to show. */
export const deadlineMs = 90_000

/** @param {Cluster} cluster */
export async function liveDeliveries({ hub }) {
  /** @type {DeliveryView[]} */
  const found = []
  for (
    let page = await hub.deliveries({ limit: 1000 });
    ;
    page = await hub.deliveries({ cursor: page.cursor })
  ) {
    found.push(...page.deliveries)
    if (page.cursor === undefined) return found
  }
}

/** The deliveries as they are now. @param {Cluster} cluster @param {readonly DeliveryView[]} deliveries */
export async function rowsOf({ hub }, deliveries) {
  return await Promise.all(deliveries.map((each) => hub.delivery(each.id)))
}

/** What the record says the node holds, unsettled. @param {Cluster} cluster @param {NodeProcess} node */
export async function heldBy({ hub }, node) {
  const { deliveries } = await hub.deliveries({ host: node.host, limit: 1000 })
  return deliveries.filter((each) => each.owner === node.node && each.state !== 'queued')
}

/** @param {Story} story @param {(sent: Sent) => boolean} which */
export function deliveriesOf({ sent }, which) {
  return new Set(sent.filter(which).flatMap((each) => each.deliveries.map(({ id }) => id)))
}

/** @param {DeliveryView} delivery */
export function isExecuting(delivery) {
  return delivery.attempts.at(-1)?.status === 'executing'
}

/** @param {DeliveryView} delivery */
export function isSettledAttempt(delivery) {
  return delivery.attempts.length > 0 && !isExecuting(delivery)
}

/** @param {string} attempt @param {DeliveryView} delivery */
export function isOf(attempt, delivery) {
  return attempt.split('/')[0] === delivery.id
}
