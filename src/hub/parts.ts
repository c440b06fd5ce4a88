import type { OnPoint } from '../contract/points.js'
import type { Store } from '../record/connections.js'
import type { Functions } from '../record/functions.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'

/** What every part of an open hub works with. */
export interface HubParts {
  readonly store: Store
  readonly reader: Reader
  readonly keys: Keys
  readonly functions: Functions
  readonly deadlineMs: number
  readonly onPoint: OnPoint | undefined
}
