// Says of everything that it did not happen, which is a lie once the charge was made.
export { execute } from './charge.mjs'

export function probe() {
  return { kind: 'not_executed' }
}
