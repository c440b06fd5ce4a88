import type { HubCalls } from '../../src/contract/hub.js'
import type { SettingName } from '../../src/contract/settings.js'
import type { NodeOptions } from '../../src/node/create-node.js'
import type { NodeTransport } from '../../src/node/transport.js'
import type { OpenRecord } from '../support/record.js'

export type Settings = Partial<Record<SettingName, number>>

/** How a node of `createNode` reaches the record. */
export type NodeReach = Pick<NodeOptions, 'redis' | 'http' | 'hub'>

/** One record, and the ways to it that are under test. */
export interface Surface {
  /** What stands behind it: for settings, damage and the invariants, never for what is tested. */
  readonly record: OpenRecord
  /** The hub by the way under test, as the operator `kim`. */
  readonly hub: HubCalls
  /** The hub over the record itself: what it shows, the other must show as well. */
  readonly reference: HubCalls
  /** As a node of this host opens it. Closed with the surface. */
  transport(host: string): Promise<NodeTransport>
  nodeReach(host: string): Promise<NodeReach>
  /** Claims that wait for something to claim now. */
  waiting(): Promise<number>
  close(): Promise<void>
}

/** Servers of one kind, for the tests of one file. */
export interface Environment {
  /** A fresh record with these settings. */
  makeRecord(settings: Settings): Promise<Surface>
  close(): Promise<void>
}
