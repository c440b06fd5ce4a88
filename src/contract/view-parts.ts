import { z } from 'zod'

/** Unix ms by the clock of Redis. */
export const timeMs = z.int().nonnegative()
export const count = z.int().nonnegative()
