import type { HostView, NodeView, PendingEntry } from '../../contract/host-views.js'
import { livenessOf } from '../../contract/liveness.js'
import { fenceAct } from '../acts.js'
import { get, part } from '../api.js'
import { forHost } from '../commands.js'
import { duration, number } from '../format.js'
import { mayAct } from '../hub.js'
import { ask } from '../parts/act.js'
import { Badge, Copy, Facts, Head, Note, Panel, RefusalNote, Time } from '../parts/basics.js'
import { type Column, type ListPage, PagedTable, Table } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link } from '../route.js'
import { DeliveryTable } from './deliveries.js'
import { HostActs, HostState, useHostFences, useStaleAfter } from './hosts.js'

export function HostScreen({ host }: { host: string }) {
  const staleAfterMs = useStaleAfter()
  const drains = useHostFences()
  const { value, refusal } = useResource(
    `host ${host}`,
    (signal) => get<HostView>(`v1/hosts/${part(host)}`, {}, signal),
    { everyMs: 2000 },
  )
  return (
    <>
      <Head
        title={`Host ${host}`}
        aside={
          value !== undefined &&
          mayAct() && (
            <>
              <HostActs host={value} drains={drains} />
              <button type="button" onClick={() => ask(fenceAct(`host:${host}`))}>
                Fence
              </button>
            </>
          )
        }
      >
        {value !== undefined && <HostState host={value} staleAfterMs={staleAfterMs} drains={drains} />}
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      {value !== undefined && (
        <>
          <Panel title="What waits">
            <Facts
              facts={[
                [
                  'Queued, parked or in flight',
                  <a href={link(['deliveries'], { host })}>{number(value.entries)}</a>,
                ],
                [
                  'Handed over, not finished',
                  <a href={link(['deliveries'], { host, state: 'delivered' })}>{number(value.awaiting)}</a>,
                ],
                ['Retired', value.retiredAt === undefined ? undefined : <Time at={value.retiredAt} />],
              ]}
            />
          </Panel>
          <Nodes nodes={value.nodes} staleAfterMs={staleAfterMs} />
          <Pending host={host} />
          <Panel title="Live deliveries">
            <DeliveryTable filter={{ host }} />
          </Panel>
        </>
      )}
    </>
  )
}

function Nodes({ nodes, staleAfterMs }: { nodes: readonly NodeView[]; staleAfterMs: number }) {
  const figure = (ms: number | undefined) => (ms === undefined ? '–' : duration(ms))
  return (
    <Panel title="Nodes">
      <Table
        caption="Nodes"
        rows={nodes}
        keyOf={({ node }) => node}
        empty="No node of this host ever joined."
        columns={[
          { name: 'Node', cell: ({ node }) => node },
          { name: 'State', cell: (node) => <Badge word={livenessOf(node, staleAfterMs)} /> },
          { name: 'Incarnation', isFigure: true, cell: ({ incarnation }) => incarnation },
          { name: 'Heartbeat', isFigure: true, cell: ({ heartbeatAgeMs }) => duration(heartbeatAgeMs) },
          { name: 'Progress', isFigure: true, cell: ({ progressAgeMs }) => figure(progressAgeMs) },
          { name: 'Blocked', isFigure: true, cell: ({ blockingMs }) => figure(blockingMs) },
          {
            name: 'Longest block',
            isFigure: true,
            cell: ({ blockingLongestMs }) => figure(blockingLongestMs),
          },
          {
            name: 'Mirror commits',
            isFigure: true,
            cell: ({ mirrorCommits }) => (mirrorCommits === undefined ? '–' : number(mirrorCommits)),
          },
          { name: 'Longest commit', isFigure: true, cell: ({ mirrorLongestMs }) => figure(mirrorLongestMs) },
        ]}
      />
    </Panel>
  )
}

function Pending({ host }: { host: string }) {
  const pages = usePages(`pending ${host}`)
  const list = useResource<ListPage<PendingEntry>>(
    `pending ${host} ${pages.cursor ?? ''}`,
    async (signal) => {
      const params = { cursor: pages.cursor, limit: 50 }
      const path = `v1/hosts/${part(host)}/pending`
      const { pending, cursor } = await get<{ pending: PendingEntry[]; cursor?: string }>(
        path,
        params,
        signal,
      )
      return { rows: pending, cursor }
    },
    { everyMs: 3000 },
  )
  const wrong = (list.value?.rows ?? []).filter((entry) => disagreement(entry) !== undefined)
  return (
    <Panel
      title="Pending list"
      aside={
        <>
          <Copy label="Copy: redis-cli" text={forHost.redisPending(host)} />
          <Copy label="holdfast pending" text={forHost.cliPending(host)} />
        </>
      }
    >
      {wrong.length > 0 && (
        <Note tone="bad">
          ! {number(wrong.length)} of this page disagree with their row. Right now it may just have moved; if
          it stays, run the sweep claims.
        </Note>
      )}
      <PagedTable
        caption="Pending list, as Redis has it, beside the rows"
        list={list}
        pages={pages}
        keyOf={({ entry }) => entry}
        empty="Nothing is pending: nothing is claimed or mirrored here."
        columns={pendingColumns}
      />
    </Panel>
  )
}

const pendingColumns: readonly Column<PendingEntry>[] = [
  { name: 'Entry', cell: ({ entry }) => <span class="mono">{entry}</span> },
  { name: 'Consumer', cell: ({ consumer }) => consumer },
  { name: 'Idle', isFigure: true, cell: ({ idleMs }) => duration(idleMs) },
  {
    name: 'Delivery',
    cell: ({ delivery }) =>
      delivery === undefined ? (
        ''
      ) : (
        <a class="mono" href={link(['deliveries', delivery])}>
          {delivery}
        </a>
      ),
  },
  { name: 'Row says', cell: ({ state }) => (state === undefined ? '' : <Badge word={state} />) },
  { name: 'Owner', cell: ({ owner }) => owner ?? '' },
  { name: 'Epoch', isFigure: true, cell: ({ epoch }) => epoch ?? '' },
  {
    name: 'Agree',
    cell: (entry) => {
      const why = disagreement(entry)
      return why === undefined ? <Badge word="ok" label="agree" /> : <Badge word="wrong" label={why} />
    },
  },
]

/** How an entry of the pending list and its row differ: pending is exactly claimed or mirrored, consumer is owner. */
function disagreement({ delivery, state, owner, consumer, host }: PendingEntry): string | undefined {
  if (delivery === undefined) return 'the entry is gone from the stream'
  if (state === undefined) return 'there is no row'
  if (state !== 'claimed' && state !== 'mirrored') return `the row is ${state}`
  const isOwner = owner === consumer || owner === `${host}/${consumer}`
  return isOwner ? undefined : `the row names ${owner ?? 'nobody'}`
}
