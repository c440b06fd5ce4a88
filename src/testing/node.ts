import { join } from 'node:path'
import {
  type ByExecutor,
  type ByFunction,
  createNode,
  type HoldfastNode,
  type NodeBasics,
  type OnRedis,
  type OverHttp,
} from '../node/create-node.js'
import type { Attempt } from '../node/executor.js'

/** Options of a node within a test: those of `createNode`, of which most are there already. */
export type TestNodeOptions = Partial<NodeBasics> & Partial<OverHttp | OnRedis> & (ByExecutor | ByFunction)

/** A node in this process that notes what it executes. */
export interface RunningNode extends HoldfastNode {
  /** Attempts whose handler was entered, in order. Of an `executor` nothing is noted. */
  readonly executed: readonly Attempt[]
  /** Its mirror: another node of the same host and name with this file is its next process. */
  readonly mirror: string
}

/** Where a node is that was not told otherwise. */
interface Usual {
  readonly redis: string
  readonly hub: string
  readonly host: string
  readonly dir: string
}

let mirrors = 0

/** Starts a node; `opened` gets it before it has joined, so that it ends with its record in any case. */
export async function startNode(
  given: TestNodeOptions,
  { dir, redis, ...usual }: Usual,
  opened: (node: HoldfastNode) => void,
): Promise<RunningNode> {
  mirrors += 1
  const mirror = given.mirror ?? join(dir, `${mirrors}.db`)
  const executed: Attempt[] = []
  const { execute } = given
  const noting =
    execute === undefined
      ? given
      : {
          ...given,
          execute: (attempt: Attempt) => {
            executed.push(attempt)
            return execute(attempt)
          },
        }
  // A node reaches the hub over HTTP alone where an address is given.
  const { http } = given
  const reach = http === undefined ? { redis: given.redis ?? redis, http } : { http, redis: given.redis }
  const node = createNode({ ...usual, ...noting, ...reach, mirror })
  opened(node)
  await node.start()
  return { ...node, executed, mirror }
}
