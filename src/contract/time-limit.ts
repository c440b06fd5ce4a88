import { HoldfastError } from './errors.js'

/** A number of milliseconds, which may be endless; what is none would be waited for without end. @throws INVALID_ARGUMENT */
export function requireMs(name: string, value: unknown): void {
  if (typeof value === 'number' && !Number.isNaN(value)) return
  throw new HoldfastError(
    'INVALID_ARGUMENT',
    `${name} must be a number of milliseconds, and is ${String(value)}`,
  )
}
