import { z } from 'zod'

/** Unix ms by the clock of Redis. */
export const timeMs = z.int().nonnegative()
export const count = z.int().nonnegative()

/** What a schema describes, as those have it who read it: nothing in it is to be changed. */
export type View<Schema extends z.ZodType> = Unchanging<z.output<Schema>>

/** The same, read-only down to its last part. */
export type Unchanging<Value> = Value extends object
  ? { readonly [Name in keyof Value]: Unchanging<Value[Name]> }
  : Value
