import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNode, type HoldfastNode, type NodeOptions } from '../../src/node/create-node.js'
import type { Attempt } from '../../src/node/executor.js'

/** A node in this process that notes what it executes. */
export interface RunningNode {
  readonly node: HoldfastNode
  /** Attempts whose handler was entered, in order. */
  readonly executed: readonly Attempt[]
  /** What it logged: the message with its particulars. */
  readonly logs: readonly (object & { log: string })[]
}

let dir: string | undefined
const running: HoldfastNode[] = []
let mirrors = 0

/** A path for a mirror or a file of marks, new each time, gone after {@link stopNodes}. */
export function freshPath(ending: string): string {
  dir ??= mkdtempSync(join(tmpdir(), 'holdfast-faults-'))
  mirrors += 1
  return join(dir, `${mirrors}.${ending}`)
}

export async function startNode(
  options: Omit<NodeOptions, 'mirror'> & { readonly mirror?: string },
): Promise<RunningNode> {
  const executed: Attempt[] = []
  const logs: (object & { log: string })[] = []
  const note = (particulars: object, log: string) => void logs.push({ log, ...particulars })
  const { execute = () => 'done' } = options
  const node = createNode({
    mirror: freshPath('db'),
    log: { debug: note, info: note, warn: note, error: note },
    ...options,
    execute: (attempt) => {
      executed.push(attempt)
      return execute(attempt)
    },
  })
  running.push(node)
  await node.start()
  return { node, executed, logs }
}

/** Stops every node of this process and removes their mirrors. For afterAll. */
export async function stopNodes(): Promise<void> {
  await Promise.all(running.splice(0).map((node) => node.stop()))
  if (dir !== undefined) rmSync(dir, { recursive: true, force: true })
  dir = undefined
}
