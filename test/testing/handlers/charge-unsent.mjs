// Says that nothing was sent, after it was.
import { execute as charge } from './charge.mjs'

const { notSent } = await import(new URL('../../../dist/node/index.js', import.meta.url).href)

/** @param {{ deliveryId: string, number: number }} attempt */
export function execute(attempt) {
  charge(attempt)
  return attempt.number === 1 ? notSent('busy') : { charged: true }
}
