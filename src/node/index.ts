/** Nodes: what runs on recipient hosts. */

export { HoldfastError } from '../contract/errors.js'
export { type NotSent, notSent, type Outcome, type Terminal, terminal } from '../contract/outcomes.js'
export { type Point, points } from '../contract/points.js'
export {
  createNode,
  type HoldfastNode,
  type HubAddress,
  type NodeEnd,
  type NodeOptions,
} from './create-node.js'
export type { Attempt, ExecuteFunction, Executor } from './executor.js'
export { type CommandExecutorOptions, commandExecutor } from './executors/command.js'
export { type ForwardExecutorOptions, forwardExecutor } from './executors/forward.js'
export type { NodeLog } from './log.js'
