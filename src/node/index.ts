/** Nodes: what runs on recipient hosts. */

export { HoldfastError } from '../contract/errors.js'
export {
  type NotSent,
  notSent,
  type Outcome,
  type ProbeAnswer,
  type Terminal,
  terminal,
} from '../contract/outcomes.js'
export { type Point, points } from '../contract/points.js'
export type { ClaimedMessage } from '../contract/steps.js'
export { crashPoint } from './crash-point.js'
export {
  type ByExecutor,
  type ByFunction,
  createNode,
  type HoldfastNode,
  type HubAddress,
  type NodeBasics,
  type NodeEnd,
  type NodeOptions,
  type OnRedis,
  type OverHttp,
} from './create-node.js'
export type { Attempt, ExecuteFunction, Executor, ProbeFunction, Prober } from './executor.js'
export { type CommandExecutorOptions, commandExecutor } from './executors/command.js'
export { type ForwardExecutorOptions, forwardExecutor } from './executors/forward.js'
export type { NodeLog } from './log.js'
export { type CommandProbeOptions, commandProbe } from './probes/command.js'
export { type HttpProbeOptions, httpProbe } from './probes/http.js'
export {
  createSupervisor,
  type Supervisor,
  type SupervisorEnd,
  type SupervisorOptions,
} from './supervisor.js'
