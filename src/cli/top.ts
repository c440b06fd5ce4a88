import type { Command } from 'commander'
import { z } from 'zod'
import { isHoldfastError } from '../contract/errors.js'
import type { HubCalls } from '../contract/hub.js'
import { hubsOf, withHub } from './context.js'
import { type ExitCode, exitCodes } from './failure.js'
import { action, value } from './flags.js'
import { print, printJson, visible } from './output.js'
import { type Screen, type ScreenLine, takeScreen } from './screen.js'
import { watchSignals } from './signals.js'
import { isoTime, shortDuration } from './times.js'
import { readSnapshot, type Snapshot } from './top-reading.js'
import { type ViewName, viewLines, viewNames } from './top-views.js'

const leastEveryMs = 250
const schema = z.object({
  every: value.duration
    .refine((ms) => ms >= leastEveryMs && ms <= 3_600_000, 'must be 250ms to 1h')
    .default(2000),
  once: value.flag,
})

/** `holdfast top`: a hub at a glance, as it changes. */
export function addTop(program: Command): void {
  program
    .command('top')
    .description('states, rates, ages, nodes, fences and what waits for someone, as they change')
    .option('--every <time>', 'how often it is read: 500ms, 5s, or plain milliseconds (2s)')
    .option('--once', 'one reading as text; also where stdout is no terminal')
    .action(
      action(schema, async ({ every, once }, { settings, json }) => {
        const name = hubsOf(settings).join(',')
        const where = settings.http === undefined ? name : settings.http.url
        const isOnce = once || (!json && process.stdout.isTTY !== true)
        const show = (hub: HubCalls) => (json ? printLines(hub, every) : showScreen(hub, { every, where }))
        if (!isOnce) return await withHub(settings, show, { handlesSignals: true })
        const snapshot = await withHub(settings, (hub) => readSnapshot(hub, undefined))
        if (json) printJson(snapshot)
        else printSnapshot(snapshot, where)
        return exitCodes.ok
      }),
    )
}

function printSnapshot(snapshot: Snapshot, where: string): void {
  print(`${where}  ${isoTime(snapshot.overview.at)}`)
  for (const view of viewNames) {
    const lines = viewLines(view, snapshot, Number.POSITIVE_INFINITY)
    print(view === 'overview' ? '' : `\n${view.toUpperCase()}`)
    for (const { text } of lines) print(text)
  }
}

/** Since when there was no answer, and why. */
interface Away {
  /** Unix ms by the clock of this machine. */
  readonly since: number
  readonly why: string
}

interface Reading {
  readonly snapshot: Snapshot | undefined
  readonly away: Away | undefined
}

const patienceMs = 5000

/**
 * Reads again and again until the signal is aborted, and tells each reading. Where one fails, or does not come in time,
 * that is told instead, with what was read last; the next is tried all the same.
 */
async function readOn(
  hub: HubCalls,
  { every, signal, onReading }: { every: number; signal: AbortSignal; onReading: (reading: Reading) => void },
): Promise<void> {
  let last: Reading = { snapshot: undefined, away: undefined }
  let isReading = false
  const read = async () => {
    const startedAt = Date.now()
    const tell = (reading: Reading) => {
      last = reading
      if (!signal.aborted) onReading(reading)
    }
    const since = () => last.away?.since ?? startedAt
    isReading = true
    const late = setTimeout(() => {
      tell({ ...last, away: { since: since(), why: `no answer for ${shortDuration(patienceMs)}` } })
    }, patienceMs)
    try {
      tell({ snapshot: await readSnapshot(hub, last.snapshot), away: undefined })
    } catch (error) {
      tell({ ...last, away: { since: since(), why: whyOf(error) } })
    } finally {
      clearTimeout(late)
      isReading = false
    }
  }
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (!isReading) void read()
    }, every)
    const end = () => {
      clearInterval(timer)
      resolve()
    }
    if (signal.aborted) return end()
    signal.addEventListener('abort', end, { once: true })
    void read()
  })
}

function whyOf(error: unknown): string {
  if (isHoldfastError(error)) return error.message
  return error instanceof Error ? error.message : String(error)
}

/** One snapshot a line until a signal, or until nobody reads them; `away` in its place where there is none. */
async function printLines(hub: HubCalls, every: number): Promise<ExitCode> {
  const over = endOfShow()
  const onReading = ({ snapshot, away }: Reading) => printJson(away === undefined ? snapshot : { away })
  await readOn(hub, { every, signal: over.signal, onReading }).finally(over.dispose)
  return exitCodes.ok
}

interface End {
  readonly signal: AbortSignal
  end(): void
  dispose(): void
}

function endOfShow(): End {
  const over = new AbortController()
  const signals = watchSignals('SIGHUP')
  const end = () => over.abort()
  void signals.first.then(end)
  process.stdout.once('error', end)
  return {
    signal: over.signal,
    end,
    dispose: () => {
      signals.dispose()
      process.stdout.removeListener('error', end)
    },
  }
}

/** What is on the screen beside the reading. */
interface Shown {
  readonly view: ViewName
  readonly isPaused: boolean
  readonly isHelp: boolean
}

async function showScreen(
  hub: HubCalls,
  { every, where }: { every: number; where: string },
): Promise<ExitCode> {
  const over = endOfShow()
  let shown: Shown = { view: 'overview', isPaused: false, isHelp: false }
  let reading: Reading = { snapshot: undefined, away: undefined }
  const redraw = () => screen.draw(screenLines({ reading, shown, where, every }, screen))
  const screen = takeScreen({
    onRedraw: () => redraw(),
    onKey: (key) => {
      if (key === 'quit') return over.end()
      shown = pressed(shown, key)
      redraw()
    },
  })
  const onReading = (next: Reading) => {
    if (shown.isPaused) return
    reading = next
    redraw()
  }
  redraw()
  await readOn(hub, { every, signal: over.signal, onReading }).finally(() => {
    screen.leave()
    over.dispose()
  })
  return exitCodes.ok
}

function pressed(shown: Shown, key: string): Shown {
  if (key === '?') return { ...shown, isHelp: !shown.isHelp }
  if (key === 'p') return { ...shown, isPaused: !shown.isPaused, isHelp: false }
  if (key !== 'tab') return { ...shown, isHelp: false }
  const next = viewNames[(viewNames.indexOf(shown.view) + 1) % viewNames.length] ?? shown.view
  return { ...shown, view: next, isHelp: false }
}

const help: readonly ScreenLine[] = [
  { text: 'KEYS', style: 'bold' },
  { text: '  tab   overview, hosts, held queue, unknown list' },
  { text: '  p     pause, and go on' },
  { text: '  ?     this help' },
  { text: '  q     quit' },
  { text: '' },
  { text: 'WORDS', style: 'bold' },
  { text: '  owed          messages whose deliveries are not all made yet (obligations)' },
  { text: '  oldest        how long the oldest of each list waits' },
  { text: '  silent        nodes that did not leave, and are not heard' },
  { text: '  stranded      hosts with work and no live node' },
  { text: '  effects       effects that are claimed and not settled' },
  { text: '  late          reports that came too late, and were kept as evidence' },
  { text: '  progress      since a live node last had an answer to a claim, the worst' },
  { text: '  blocking      the longest that something held a node, last period' },
  { text: '  mirror        a commit of a mirror, the mean; longest: the longest of them' },
]

/** The whole screen: a line that says what it is, the view, and a line of keys. */
function screenLines(
  { reading, shown, where, every }: { reading: Reading; shown: Shown; where: string; every: number },
  { rows }: Pick<Screen, 'rows'>,
): ScreenLine[] {
  const { snapshot, away } = reading
  const at = snapshot === undefined ? 'reading' : isoTime(snapshot.overview.at).slice(0, 19)
  const state = shown.isPaused ? 'PAUSED' : `every ${shortDuration(every)}`
  const names = viewNames.map((name) => (name === shown.view ? `[${name}]` : name)).join(' ')
  const top: ScreenLine[] = [{ text: visible(`${where}  ${at}  ${state}  ${names}`), style: 'bold' }]
  if (away !== undefined) {
    const since = `${isoTime(away.since).slice(0, 19)}Z`
    top.push({ text: visible(`the hub is away since ${since}: ${away.why}`), style: 'red' })
  }
  const keys: ScreenLine = { text: 'q quit  p pause  tab next  ? help', style: 'dim' }
  const left = Math.max(1, rows - top.length - 1)
  const body = shown.isHelp ? help : snapshot === undefined ? [] : viewLines(shown.view, snapshot, left)
  const filled = Array.from({ length: left }, (_, row): ScreenLine => body[row] ?? { text: '' })
  return [...top, ...filled, keys]
}
