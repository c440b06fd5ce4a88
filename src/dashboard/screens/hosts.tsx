import type { FenceView, HostView } from '../../contract/host-views.js'
import { livenessOf } from '../../contract/liveness.js'
import { settingIn } from '../../contract/settings.js'
import type { SettingView } from '../../contract/upkeep-views.js'
import { drainAct, liftAct, retireAct } from '../acts.js'
import { get } from '../api.js'
import { duration, number } from '../format.js'
import { mayAct } from '../hub.js'
import { ask } from '../parts/act.js'
import { Badge, Head } from '../parts/basics.js'
import { Filters } from '../parts/filters.js'
import { type ListPage, PagedTable } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link, place } from '../route.js'

export function HostsScreen() {
  const only = place.value.query.get('only') ?? undefined
  const pages = usePages(`hosts ${only ?? ''}`)
  const staleAfterMs = useStaleAfter()
  const drains = useHostFences()
  const list = useResource<ListPage<HostView>>(
    `hosts ${only ?? ''} ${pages.cursor ?? ''}`,
    async (signal) => {
      const params = { only, cursor: pages.cursor, limit: 50 }
      const { hosts, cursor } = await get<{ hosts: HostView[]; cursor?: string }>('v1/hosts', params, signal)
      return { rows: hosts, cursor }
    },
    { everyMs: 3000 },
  )
  return (
    <>
      <Head title="Hosts">
        <p class="muted">Every host that was ever sent to or joined, with its nodes and what waits for it.</p>
      </Head>
      <Filters fields={[{ name: 'only', label: 'Only', options: ['stranded', 'silent'] }]} />
      <PagedTable
        caption="Hosts"
        list={list}
        pages={pages}
        keyOf={({ host }) => host}
        empty={only === undefined ? 'No host was ever sent to, and none joined.' : `No host is ${only}.`}
        columns={[
          { name: 'Host', cell: ({ host }) => <a href={link(['hosts', host])}>{host}</a> },
          {
            name: 'State',
            cell: (host) => <HostState host={host} staleAfterMs={staleAfterMs} drains={drains} />,
          },
          {
            name: 'Queued or in flight',
            isFigure: true,
            cell: ({ host, entries }) => <a href={link(['deliveries'], { host })}>{number(entries)}</a>,
          },
          { name: 'Not finished', isFigure: true, cell: ({ awaiting }) => number(awaiting) },
          {
            name: 'Nodes',
            isWide: true,
            cell: ({ nodes }) => (
              <ul class="nodes">
                {nodes.map((node) => (
                  <li key={node.node}>
                    <Badge word={livenessOf(node, staleAfterMs)} label={node.node} />{' '}
                    {node.state === 'live' && (
                      <span class="muted">
                        heartbeat {duration(node.heartbeatAgeMs)}
                        {node.progressAgeMs !== undefined && `, progress ${duration(node.progressAgeMs)}`}
                        {node.blockingLongestMs !== undefined &&
                          `, blocked ${duration(node.blockingLongestMs)}`}
                      </span>
                    )}
                  </li>
                ))}
              </ul>
            ),
          },
          ...(mayAct()
            ? [{ name: 'Decide', cell: (host: HostView) => <HostActs host={host} drains={drains} /> }]
            : []),
        ]}
      />
    </>
  )
}

/** Silence after which a node is taken for gone, as it is set. */
export function useStaleAfter(): number {
  const { value } = useResource(
    'stale_after_ms',
    async (signal) => (await get<{ settings: SettingView[] }>('v1/config', {}, signal)).settings,
    { everyMs: 60_000, isTimed: true },
  )
  return settingIn(value ?? [], 'stale_after_ms')
}

/** Fences on hosts, by host. */
export function useHostFences(): ReadonlyMap<string, FenceView> {
  const { value } = useResource('host fences', async (signal) => {
    const { fences } = await get<{ fences: FenceView[] }>('v1/fences', {}, signal)
    const onHosts = fences.filter(({ fence }) => fence.startsWith('pause:host:'))
    return new Map(onHosts.map((fence) => [fence.fence.slice('pause:host:'.length), fence]))
  })
  return value ?? new Map()
}

interface HostStateProps {
  readonly host: HostView
  readonly staleAfterMs: number
  readonly drains: ReadonlyMap<string, FenceView>
}

export function HostState({ host, staleAfterMs, drains }: HostStateProps) {
  const live = host.nodes.filter((node) => livenessOf(node, staleAfterMs) === 'live').length
  const fence = drains.get(host.host)
  if (host.retiredAt !== undefined) return <Badge word="retired" />
  if (live === 0 && host.entries + host.awaiting > 0) {
    return <Badge word="stranded" label={host.joined ? 'work, and no live node' : 'never joined, has work'} />
  }
  if (fence !== undefined)
    return <Badge word="drained" label={fence.reason === 'drain' ? 'drains' : 'paused'} />
  if (live === 0) return <Badge word="left" label={host.joined ? 'no live node' : 'never joined'} />
  return <Badge word="live" />
}

export function HostActs({ host, drains }: { host: HostView; drains: ReadonlyMap<string, FenceView> }) {
  if (host.retiredAt !== undefined) return null
  const fence = drains.get(host.host)
  const named = <span class="hidden"> {host.host}</span>
  return (
    <span class="acts">
      {fence === undefined ? (
        <button type="button" onClick={() => ask(drainAct(host.host))}>
          Drain{named}
        </button>
      ) : (
        <button type="button" onClick={() => ask(liftAct(fence))}>
          Lift the pause{named}
        </button>
      )}
      <button type="button" onClick={() => ask(retireAct(host.host))}>
        Retire{named}
      </button>
    </span>
  )
}
