import type { Command } from 'commander'
import { z } from 'zod'
import type { HubCalls } from '../contract/hub.js'
import type { LogFilter } from '../contract/log-filter.js'
import type { LogEvent } from '../contract/wire-log.js'
import { hubsOf, isSet, withHub } from './context.js'
import { action, value } from './flags.js'
import { heading, print, printJson, say, visible } from './output.js'
import { watchSignals } from './signals.js'
import { isoTime } from './times.js'

const verbs = value.text
  .regex(/^[a-z_]{1,64}(,[a-z_]{1,64}){0,63}$/, 'must be names of verbs, between commas: accept,claim')
  .transform((given) => given.split(','))
const schema = z.object({
  verb: verbs.optional(),
  actor: value.sentence.optional(),
  host: value.host.optional(),
  about: value.sentence.optional(),
  lines: value.wholeNumber(0, 10_000).default(10),
  follow: z.boolean().default(true),
})

/** `holdfast tail`: the log of the hub, from its last entries on. */
export function addTail(program: Command): void {
  program
    .command('tail')
    .description('the last entries of the log, then what comes, until SIGINT or SIGTERM')
    .option('--verb <names>', 'of these verbs, between commas')
    .option('--actor <name>', 'of this actor')
    .option('--host <host>', 'of this host')
    .option('--about <id>', 'about a message, delivery, attempt, session, effect or fence')
    .option('-n, --lines <n>', 'how many of the last entries, 0 to 10000 (10)')
    .option('--no-follow', 'end behind the last entry')
    .action(
      action(schema, async ({ lines, follow, verb, ...rest }, { settings, json }) => {
        const filter = { ...rest, verbs: verb }
        const told = json ? printJson : (entry: LogEvent) => print(entryText(entry))
        const end = follow ? endOfReading() : undefined
        const show = async (hub: HubCalls) => {
          // Before the entries are read: what comes meanwhile is told once, and none is missed.
          const places = follow ? await endsOf(hub, isSet(settings) ? hubsOf(settings) : undefined) : ''
          const last = await lastEntries(hub, filter, lines)
          for (const entry of last) told(entry)
          if (end !== undefined) await followFrom(hub, { filter, places, last, signal: end.signal, told })
        }
        await withHub(settings, show, { handlesSignals: follow }).finally(end?.dispose)
      }),
    )
}

/** Over with the first signal, and when nobody reads our output any more. */
function endOfReading(): { readonly signal: AbortSignal; dispose(): void } {
  const over = new AbortController()
  const signals = watchSignals('SIGHUP')
  const end = () => over.abort()
  void signals.first.then(end)
  process.stdout.once('error', end)
  return {
    signal: over.signal,
    dispose: () => {
      signals.dispose()
      process.stdout.removeListener('error', end)
    },
  }
}

type Places = string | Readonly<Record<string, string>>

/** Where the log ends now: of a set, the log of each hub. */
async function endsOf(hub: HubCalls, hubs: readonly string[] | undefined): Promise<Places> {
  const end = async (cursor?: string) => (await hub.logPage({ limit: 1, cursor })).entries.at(0)?.id ?? '0-0'
  if (hubs === undefined) return await end()
  // A cursor of a set names hubs: one that names a hub alone begins with the newest entry of that one.
  const found = await Promise.all(hubs.map(async (each) => [each, await end(`${each}|`)] as const))
  return Object.fromEntries(found)
}

const pageSize = 1000
/** A filter that nothing matches is not taken through a log without end. */
const pagesAtMost = 200

/** The last entries that are wanted, the oldest of them first. */
async function lastEntries(hub: HubCalls, filter: LogFilter, many: number): Promise<LogEvent[]> {
  const found: LogEvent[] = []
  let cursor: string | undefined
  for (let pages = 0; found.length < many && pages < pagesAtMost; pages += 1) {
    const limit = Math.min(pageSize, many - found.length)
    const page = await hub.logPage({ ...filter, limit, cursor })
    found.push(...page.entries)
    cursor = page.cursor
    if (cursor === undefined) break
  }
  return found.reverse()
}

interface Following {
  readonly filter: LogFilter
  readonly places: Places
  readonly last: readonly LogEvent[]
  readonly signal: AbortSignal
  readonly told: (entry: LogEvent) => void
}

async function followFrom(hub: HubCalls, { filter, places, last, signal, told }: Following): Promise<void> {
  const placeOf = (own: string | undefined, id: string) => `${own ?? ''} ${id}`
  const seen = new Set(last.map((entry) => placeOf(entry.hub, entry.id)))
  for await (const event of hub.events({ ...filter, lastEventId: places, signal })) {
    const { id, hub: own } = event
    if (event.kind === 'gap') sayGap(event)
    else if (!seen.delete(placeOf(own, id)))
      told({ id, ...(own === undefined ? {} : { hub: own }), ...event.entry })
  }
}

function sayGap({ hub, after, first }: { hub?: string; after: string; first: string }): void {
  const whose = hub === undefined ? 'the log' : `the log of ${hub}`
  say(
    `gap: ${whose} no longer reaches back to ${after}; it goes on with ${first}, and what was between is not told`,
  )
}

const namedAtMost = 3

/** An entry on one line: time, verb, actor, what moved, where something became runnable, and what else it says. */
export function entryText({ hub, at, verb, actor, changes, hosts, details }: LogEvent): string {
  const moved = changes.map(({ ids, from, to }) => `${from || 'new'} -> ${to} ${someOf(ids)}`)
  const woken =
    hosts === '*' ? ['runnable at many hosts'] : hosts.length > 0 ? [`runnable at ${someOf(hosts)}`] : []
  const said = Object.entries(details).map(([name, text]) => `${name}=${wordOf(text)}`)
  const words = [...(hub === undefined ? [] : [hub]), heading(visible(verb)), visible(actor)]
  const rest = [...moved, ...woken, said.join(' ')].filter(Boolean).map(visible)
  return `${isoTime(at)} ${words.join(' ')}${rest.length > 0 ? `: ${rest.join('; ')}` : ''}`
}

function someOf(names: readonly string[]): string {
  const rest = names.length - namedAtMost
  return `${names.slice(0, namedAtMost).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

const wordAtMost = 160

function wordOf(text: string): string {
  const short = text.length > wordAtMost ? `${text.slice(0, wordAtMost)}…` : text
  return /^[^\s"]+$/.test(short) ? short : JSON.stringify(short)
}
