// Charges once for each attempt, and can be asked whether it did. The crash tests kill its process.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'

const { crashPoint } = await import(new URL('../../../dist/node/index.js', import.meta.url).href)
const ledger = `${process.env['HOLDFAST_CRASH_DIR']}/ledger`

/** @param {{ deliveryId: string }} attempt */
export function execute({ deliveryId }) {
  appendFileSync(ledger, `${deliveryId}\n`)
  crashPoint('charged')
  return { charged: true }
}

/** @param {{ deliveryId: string }} attempt */
export function probe({ deliveryId }) {
  const lines = existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n') : []
  return lines.includes(deliveryId) ? { kind: 'result', value: { charged: true } } : { kind: 'not_executed' }
}
