import { join } from 'node:path'
import { createNode, type HoldfastNode, type NodeOptions } from '../node/create-node.js'
import type { Attempt } from '../node/executor.js'

/** Options of a node within a test: those of `createNode`, of which most are there already. */
export type TestNodeOptions = Partial<NodeOptions>

/** A node in this process that notes what it executes. */
export interface RunningNode extends HoldfastNode {
  /** Attempts whose handler was entered, in order. Of an `executor` nothing is noted. */
  readonly executed: readonly Attempt[]
  /** Its mirror: another node of the same host and name with this file is its next process. */
  readonly mirror: string
}

type Given = TestNodeOptions & { readonly host: string; readonly dir: string }

let mirrors = 0

/** Starts a node; `opened` gets it before it has joined, so that it ends with its record in any case. */
export async function startNode(
  { dir, ...given }: Given,
  opened: (node: HoldfastNode) => void,
): Promise<RunningNode> {
  mirrors += 1
  const mirror = given.mirror ?? join(dir, `${mirrors}.db`)
  const executed: Attempt[] = []
  const { execute } = given
  const noting = execute && {
    execute: (attempt: Attempt) => {
      executed.push(attempt)
      return execute(attempt)
    },
  }
  // A node reaches the hub over HTTP alone where an address is given.
  const reach = given.http === undefined ? {} : { redis: undefined }
  const node = createNode({ ...given, ...reach, ...noting, mirror })
  opened(node)
  await node.start()
  return { ...node, executed, mirror }
}
