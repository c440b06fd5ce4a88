import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type ByExecutor,
  type ByFunction,
  createNode,
  type HoldfastNode,
  type NodeBasics,
  type NodeOptions,
  type OnRedis,
  type OverHttp,
} from '../../src/node/create-node.js'
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

/** Some options of a node: whether they go together is for createNode to say. */
export type SomeOptions = Partial<NodeBasics> & {
  readonly redis?: OnRedis['redis'] | undefined
  readonly http?: OverHttp['http'] | undefined
  readonly execute?: ByFunction['execute'] | undefined
  readonly executor?: ByExecutor['executor'] | undefined
}

export async function startNode(options: SomeOptions): Promise<RunningNode> {
  const executed: Attempt[] = []
  const logs: (object & { log: string })[] = []
  const note = (particulars: object, log: string) => void logs.push({ log, ...particulars })
  const { executor, execute = () => 'done' } = options
  const noting: ByFunction['execute'] = (attempt) => {
    executed.push(attempt)
    return execute(attempt)
  }
  const node = createNode({
    mirror: freshPath('db'),
    log: { debug: note, info: note, warn: note, error: note },
    ...options,
    ...(executor === undefined ? { execute: noting } : { executor }),
  } as NodeOptions)
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
