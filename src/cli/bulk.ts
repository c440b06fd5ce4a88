import { z } from 'zod'
import type { BulkReply } from '../contract/delivery-views.js'
import type { ActOptions, BulkFilter, HubCalls, OperatorAct } from '../contract/hub.js'
import { type ExitCode, exitCodes } from './failure.js'
import { value } from './flags.js'
import { answer, fields, print, printTable, say } from './output.js'
import { withProgress } from './progress.js'

/** What an act on many did, or would do. */
interface BulkDone extends Omit<BulkReply, 'cursor'> {
  readonly dryRun: boolean
}

/** The states that deliveries can be acted on in by a filter. */
export const liveStates = ['queued', 'claimed', 'mirrored', 'delivered', 'held', 'unknown'] as const

/** The flags that name many deliveries. */
export const bulkFlags = {
  state: z.enum(liveStates, { error: `must be one of ${liveStates.join(', ')}` }).optional(),
  host: value.host.optional(),
  conversation: value.id.optional(),
  session: value.id.optional(),
  because: value.sentence.optional(),
  dryRun: value.flag,
}
type BulkFlags = z.output<z.ZodObject<typeof bulkFlags>>

/** An id names one delivery, `--state` with what narrows it many: one of both, so that nothing is acted on by mistake. */
export function problemOfChoice(id: string | undefined, flags: Partial<BulkFlags>): string | undefined {
  const { state, host, conversation, session, because, dryRun } = flags
  const narrows = [host, conversation, session, because].some((each) => each !== undefined)
  if (id === undefined && state === undefined)
    return 'is required, or --state and what narrows it, for all that match'
  if (id === undefined) return undefined
  return state !== undefined || narrows || dryRun === true
    ? 'names one delivery, the flags beside it many: give one of both'
    : undefined
}

/** Counts what matches and says so, then acts on it page by page. 1 when any was refused. */
export async function actOnAll(
  hub: HubCalls,
  verb: OperatorAct,
  { flags, act, json }: { flags: BulkFlags; act: ActOptions; json: boolean },
): Promise<ExitCode> {
  const { state = 'held', host, conversation, session, because: reason, dryRun } = flags
  const filter = { state, host, conversation, session, reason }
  const { matched } = await allPages((cursor) =>
    hub.actOnMany(verb, filter, { ...act, dryRun: true, cursor, limit: countedAtOnce }),
  )
  say(`${matched} ${matched === 1 ? 'delivery matches' : 'deliveries match'}`)
  const done = dryRun
    ? { matched, done: 0, refused: [] }
    : await actPaged(hub, verb, { filter, act, json, matched })
  answer(json, { ...done, dryRun }, printDone)
  return done.refused.length > 0 ? exitCodes.failed : exitCodes.ok
}

const countedAtOnce = 1000
/** Small enough that a bar moves, and that an interrupt is soon. */
const actedAtOnce = 100

async function actPaged(
  hub: HubCalls,
  verb: OperatorAct,
  how: { filter: BulkFilter; act: ActOptions; json: boolean; matched: number },
): Promise<Omit<BulkReply, 'cursor'>> {
  const { filter, act, json, matched } = how
  return await withProgress(verb, json, (onProgress) =>
    allPages(
      (cursor) => hub.actOnMany(verb, filter, { ...act, cursor, limit: actedAtOnce }),
      ({ matched: seen }) => onProgress?.(seen, matched),
    ),
  )
}

async function allPages(
  page: (cursor: string | undefined) => Promise<BulkReply>,
  onPage?: (sum: Omit<BulkReply, 'cursor'>) => void,
): Promise<Omit<BulkReply, 'cursor'>> {
  let sum: Omit<BulkReply, 'cursor'> = { matched: 0, done: 0, refused: [] }
  for (let cursor: string | undefined; ; ) {
    const { matched, done, refused, cursor: next } = await page(cursor)
    sum = {
      matched: sum.matched + matched,
      done: sum.done + done,
      refused: [...sum.refused, ...refused],
    }
    onPage?.(sum)
    if (next === undefined) return sum
    cursor = next
  }
}

function printDone({ matched, done, refused, dryRun }: BulkDone): void {
  if (dryRun) return
  print(
    fields([
      ['matched', matched],
      ['done', done],
      ['refused', refused.length],
    ]),
  )
  const rows = refused.map(({ id, code, detail }) => [id, code, detail.replace(`${code} `, '')])
  if (rows.length > 0) printTable('refusals', ['delivery', 'code', 'why'], rows)
}
