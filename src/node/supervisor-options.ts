import { z } from 'zod'
import type { HubCalls } from '../contract/hub.js'
import { name, objectWith, option, optionsOf, text, whole } from '../contract/options.js'
import type { NodeLog } from './log.js'

/** Options of `createSupervisor`. */
export interface SupervisorOptions {
  /** A hub, opened on the record or over HTTP. */
  readonly hub: Pick<HubCalls, 'openSession' | 'closeSession'>
  /** Id of the session that the process is. */
  readonly session: string
  /** The host that owns it: this machine. */
  readonly host: string
  /** The session's directory. */
  readonly scope: string
  /** The session it is a child of, stated at its first opening. */
  readonly parent?: string | undefined
  /** Crashes after which one is terminal. The count is the record's: it survives this process. */
  readonly restartBudget: number
  /** Program and arguments of the supervised process; it gets a process group of its own. */
  readonly command: readonly [string, ...string[]]
  /** Its working directory; `scope` when absent. */
  readonly cwd?: string | undefined
  /** Its environment; this process's own when absent. `HOLDFAST_SESSION` and `HOLDFAST_SESSION_EPOCH` are added. */
  readonly env?: NodeJS.ProcessEnv | undefined
  /** Keeps what runs, so that a later supervisor finds the process of one that was killed. One file a session. */
  readonly stateFile: string
  /** Who opens and closes, in the record; `supervisor` when absent. */
  readonly actor?: string | undefined
  /** How much the process had under way when it ended without having drained; 0 when absent. */
  readonly abandoned?: (() => number) | undefined
  /** Milliseconds from SIGTERM to SIGKILL; 10,000 when absent. */
  readonly stopGraceMs?: number | undefined
  /** Milliseconds between a crash and the next start, with jitter; 500 to 30,000 when absent. */
  readonly restartBackoff?: { readonly leastMs: number; readonly mostMs: number } | undefined
  /** A pino logger, or anything with its four methods; nothing is logged when absent. */
  readonly log?: NodeLog | undefined
}

/** What they are checked against. */
export const supervisorForm = optionsOf<SupervisorOptions>({
  hub: objectWith('a hub, or a client of one', ['openSession', 'closeSession']),
  session: name.id,
  host: name.host,
  scope: z.string(),
  parent: name.id.optional(),
  restartBudget: whole(0, 1_000_000),
  command: z.array(z.string()).min(1),
  cwd: z.string().optional(),
  env: option.names,
  stateFile: text('the path of a file'),
  actor: z.string().optional(),
  abandoned: option.function.optional(),
  stopGraceMs: whole(0).optional(),
  restartBackoff: z.strictObject({ leastMs: whole(0), mostMs: whole(0) }).optional(),
  log: option.log,
})
