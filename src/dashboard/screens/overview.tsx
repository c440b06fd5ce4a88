import type { ComponentChildren } from 'preact'
import type { History, ListName, Overview } from '../../contract/overview.js'
import { deliveryStates } from '../../contract/states.js'
import type { SweepView } from '../../contract/upkeep-views.js'
import type { readyReply } from '../../contract/wire.js'
import { address, get } from '../api.js'
import { duration, number, plural, rate, words } from '../format.js'
import { overview, overviewRefusal } from '../hub.js'
import { Badge, Head, Note, Panel, RefusalNote } from '../parts/basics.js'
import { Chart } from '../parts/chart.js'
import { Table } from '../parts/table.js'
import { useResource } from '../resource.js'
import { link } from '../route.js'
import { concernsOf } from './concerns.js'

export type Ready = ReturnType<typeof readyReply.parse>

export function OverviewScreen() {
  const value = overview.value
  const ready = useResource('ready', readReadiness, { everyMs: 5000, isTimed: true })
  const sweeps = useResource(
    'sweeps',
    async (signal) => {
      return (await get<{ sweeps: SweepView[] }>('v1/sweeps', {}, signal)).sweeps
    },
    { everyMs: 5000, isTimed: true },
  )
  const history = useResource('history', (signal) => get<History>('v1/history', {}, signal), {
    everyMs: 5000,
    isTimed: true,
  })
  return (
    <>
      <Head title="Overview" />
      {overviewRefusal.value !== undefined && (
        <RefusalNote refusal={overviewRefusal.value} title="Not read:" />
      )}
      <Concerns value={value} ready={ready.value} sweeps={sweeps.value ?? []} />
      {value !== undefined && <States value={value} />}
      <Rates history={history.value} />
      <div class="columns">
        {value !== undefined && <Lists value={value} />}
        {value !== undefined && <Fleet value={value} />}
        <Checks ready={ready.value} />
        <Sweeps sweeps={sweeps.value} />
      </div>
    </>
  )
}

/** Also where the answer is 503: it says what is not ready. */
async function readReadiness(signal: AbortSignal): Promise<Ready> {
  const response = await fetch(address('readyz'), { signal, cache: 'no-store' })
  return (await response.json()) as Ready
}

/** What somebody has to see to, the most urgent first; each leads to where it is seen to. */
function Concerns(props: {
  value: Overview | undefined
  ready: Ready | undefined
  sweeps: readonly SweepView[]
}) {
  const { value, ready, sweeps } = props
  if (value === undefined) return <p class="empty">Reading …</p>
  const concerns = concernsOf(value, ready, sweeps)
  return (
    <Panel title="What waits for someone">
      {concerns.length === 0 ? (
        <Note tone="good">
          ✓ Nothing. Every list is empty or moving, every loop and sweep succeeded lately.
        </Note>
      ) : (
        <ul class="concerns">
          {concerns.map(({ tone, text, to, since }) => (
            <li key={text} class={tone}>
              <span aria-hidden="true">{tone === 'bad' ? '!' : '‖'}</span>
              <a href={to}>{text}</a>
              {since !== undefined && <span class="muted">oldest {duration(since)}</span>}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

const liveStates: readonly string[] = deliveryStates.filter((state) => state !== 'failed')

function States({ value }: { value: Overview }) {
  return (
    <Panel
      title="Deliveries by state"
      aside={<span class="muted">{plural(value.recipients, 'recipient')} accepted in all</span>}
    >
      <ul class="states">
        {deliveryStates.map((state) => (
          <Tile
            key={state}
            word={state}
            count={value.deliveries[state] ?? 0}
            to={liveStates.includes(state) ? link(['deliveries'], { state }) : undefined}
          />
        ))}
        <Tile word="done" count={value.attempts.done} />
        <Tile word="terminal" count={value.attempts.terminal} />
      </ul>
    </Panel>
  )
}

/** A state without a delivery in it is nothing to be alarmed by. */
function Tile({ word, count, to }: { word: string; count: number; to?: string | undefined }) {
  return (
    <li class={count === 0 ? 'none' : ''}>
      <Figure to={to}>{number(count)}</Figure>
      <Badge word={word} />
    </li>
  )
}

function Figure({ to, children }: { to?: string | undefined; children: ComponentChildren }) {
  return to === undefined ? (
    <span class="big">{children}</span>
  ) : (
    <a class="big" href={to}>
      {children}
    </a>
  )
}

function Rates({ history }: { history: History | undefined }) {
  const samples = history?.samples ?? []
  if (samples.length < 2)
    return (
      <Panel title="Rates">
        <p class="empty">Not two samples yet.</p>
      </Panel>
    )
  const later = samples.slice(1)
  const times = later.map(({ at }) => at)
  const perSecond = (of: (sample: (typeof samples)[number]) => number) =>
    later.map((sample, at) => {
      const before = samples[at] ?? sample
      return Math.max(0, ((of(sample) - of(before)) * 1000) / Math.max(1, sample.at - before.at))
    })
  const accepted = perSecond(({ recipients }) => recipients)
  const finished = perSecond(({ done, terminal, failed }) => done + terminal + failed)
  const level = (name: 'queued' | 'inFlight' | 'open' | 'held' | 'unknown') =>
    later.map((sample) => sample[name])
  return (
    <div class="columns">
      <Panel
        title="Rates"
        aside={
          <span>
            {rate(accepted.at(-1) ?? 0)} accepted/s, {rate(finished.at(-1) ?? 0)} settled/s
          </span>
        }
      >
        <Chart
          label="Deliveries accepted and settled, a second"
          unit="/s"
          times={times}
          lines={[
            { name: 'accepted', colour: '--accent', values: accepted },
            { name: 'settled', colour: '--good', dash: [6, 3], values: finished },
          ]}
        />
      </Panel>
      <Panel title="Backlog">
        <Chart
          label="Deliveries that are not settled"
          unit=""
          times={times}
          lines={[
            { name: 'queued', colour: '--accent', values: level('queued') },
            { name: 'in flight', colour: '--muted', dash: [2, 3], values: level('inFlight') },
            { name: 'open', colour: '--good', dash: [6, 3], values: level('open') },
            { name: 'held', colour: '--warn', dash: [10, 3], values: level('held') },
            { name: 'unknown', colour: '--bad', dash: [10, 3, 2, 3], values: level('unknown') },
          ]}
        />
      </Panel>
    </div>
  )
}

const listMeanings: Readonly<Record<ListName, readonly [meaning: string, to: string]>> = {
  queued: ['not handed to any node yet', link(['deliveries'], { state: 'queued' })],
  claimed: ['with a node, not acknowledged', link(['deliveries'], { state: 'claimed' })],
  delivered: ['handed over, not finished', link(['deliveries'], { state: 'delivered' })],
  held: ['wait for an operator', link(['held'])],
  unknown: ['nobody knows the outcome', link(['unknown'])],
  obligations: ['messages whose deliveries are not all made', link(['log'], { verb: 'accept,fan_out' })],
}

function Lists({ value }: { value: Overview }) {
  const rows = Object.entries(value.lists) as [ListName, Overview['lists'][ListName]][]
  const counts: Partial<Record<ListName, number>> = {
    queued: value.deliveries.queued ?? 0,
    claimed: (value.deliveries.claimed ?? 0) + (value.deliveries.mirrored ?? 0),
  }
  return (
    <Panel title="Oldest of each list">
      <Table
        caption="Oldest of each list"
        rows={rows}
        keyOf={([name]) => name}
        empty=""
        columns={[
          { name: 'List', cell: ([name]) => <a href={listMeanings[name][1]}>{words(name)}</a> },
          { name: 'Meaning', isWide: true, cell: ([name]) => listMeanings[name][0] },
          { name: 'Count', isFigure: true, cell: ([name, list]) => number(list.count ?? counts[name] ?? 0) },
          {
            name: 'Oldest',
            isFigure: true,
            cell: ([, { oldestAgeMs }]) => (oldestAgeMs === 0 ? '–' : duration(oldestAgeMs)),
          },
        ]}
      />
    </Panel>
  )
}

function Fleet({ value }: { value: Overview }) {
  const { nodes } = value
  const rows: readonly (readonly [string, ComponentChildren])[] = [
    ['Hosts', <a href={link(['hosts'])}>{number(value.hosts)}</a>],
    ['Hosts with work and no live node', number(value.strandedHosts)],
    ['Nodes live, silent', `${number(nodes.live)}, ${number(nodes.silent)}`],
    ['Longest blocking of a node', duration(nodes.blockingLongestMs)],
    ['Oldest progress of a node', duration(nodes.progressAgeMs)],
    [
      'Mirror commit, mean and longest',
      `${duration(nodes.mirrorMeanMs)}, ${duration(nodes.mirrorLongestMs)}`,
    ],
    ['Takeovers', number(value.takeovers)],
    ['Late reports', number(value.lateReports)],
    [
      'Replays, idempotent takeovers of effects',
      `${number(value.attemptReplays)}, ${number(value.effectTakeovers.idempotent ?? 0)}`,
    ],
    ['Resolutions by operators', number(value.resolutions)],
    [
      'Effects executing',
      <a href={link(['effects'], { executing: 'true' })}>{number(value.effectsExecuting)}</a>,
    ],
    ['Deliveries pruned', number(value.pruned)],
  ]
  return (
    <Panel title="Nodes and what happened">
      <Table
        caption="Nodes and what happened"
        rows={rows}
        keyOf={([name]) => name}
        empty=""
        columns={[
          { name: 'What', isWide: true, cell: ([name]) => name },
          { name: 'Figure', isFigure: true, cell: ([, figure]) => figure },
        ]}
      />
    </Panel>
  )
}

function Checks({ ready }: { ready: Ready | undefined }) {
  const rows = Object.entries(ready?.checks ?? {})
  return (
    <Panel
      title="Durability and loops"
      aside={
        ready !== undefined && (
          <Badge word={ready.ready ? 'ok' : 'wrong'} label={ready.ready ? 'ready' : 'not ready'} />
        )
      }
    >
      <Table
        caption="Durability and loops"
        rows={rows}
        keyOf={([name]) => name}
        empty="Reading …"
        columns={[
          { name: 'Check', cell: ([name]) => words(name) },
          { name: 'State', cell: ([, { ok }]) => <Badge word={ok ? 'ok' : 'wrong'} /> },
          { name: 'Why', isWide: true, cell: ([, { why }]) => why ?? '' },
          {
            name: 'Age',
            isFigure: true,
            cell: ([, { ageMs }]) => (ageMs === undefined ? '–' : duration(ageMs)),
          },
        ]}
      />
    </Panel>
  )
}

function Sweeps({ sweeps }: { sweeps: readonly SweepView[] | undefined }) {
  return (
    <Panel title="Sweeps" aside={<a href={link(['sweeps'])}>All of them</a>}>
      <Table
        caption="Sweeps"
        rows={sweeps ?? []}
        keyOf={({ name }) => name}
        empty="Reading …"
        columns={[
          { name: 'Sweep', cell: ({ name }) => name },
          { name: 'State', cell: (sweep) => <Badge word={sweepState(sweep)} /> },
          { name: 'Left', isFigure: true, cell: ({ left }) => number(left ?? 0) },
          {
            name: 'Succeeded',
            isFigure: true,
            cell: ({ ageMs }) => (ageMs === undefined ? 'never' : duration(ageMs)),
          },
        ]}
      />
    </Panel>
  )
}

export function sweepState({ error, late }: SweepView): string {
  if (error !== undefined) return 'failed'
  return late ? 'late' : 'ok'
}
