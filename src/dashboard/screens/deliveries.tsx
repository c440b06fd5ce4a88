import { useState } from 'preact/hooks'
import type { DeliveryView } from '../../contract/delivery-views.js'
import type { LiveState } from '../../contract/hub.js'
import { deliveryStates } from '../../contract/states.js'
import { get } from '../api.js'
import { mayAct } from '../hub.js'
import { Age, Badge, Head } from '../parts/basics.js'
import { Filters } from '../parts/filters.js'
import { MarkedActs } from '../parts/marked.js'
import { type Column, type ListPage, PagedTable } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link, place } from '../route.js'

const states = deliveryStates.filter((state) => state !== 'failed')
const names = ['state', 'host', 'conversation', 'session', 'reason', 'message'] as const

export function DeliveriesScreen() {
  const { query } = place.value
  const filter = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]))
  const state = states.find((each) => each === filter['state']) as LiveState | undefined
  const { host, conversation, session, reason } = filter
  const bulk = state === undefined ? undefined : { state, host, conversation, session, reason }
  return (
    <>
      <Head title="Deliveries">
        <p class="muted">
          Live ones: queued, in flight, open, held or in doubt. Finished ones are found by their message.
        </p>
      </Head>
      <Filters
        fields={[
          { name: 'state', label: 'State', options: states },
          { name: 'host', label: 'Host' },
          { name: 'conversation', label: 'Conversation' },
          { name: 'session', label: 'Session' },
          { name: 'reason', label: 'Reason begins with' },
          { name: 'message', label: 'Message' },
        ]}
      />
      <DeliveryTable filter={filter} bulk={bulk} />
    </>
  )
}

interface DeliveryTableProps {
  readonly filter: Readonly<Record<string, string | undefined>>
  /** All that match can be acted on where one state is chosen. */
  readonly bulk?: Parameters<typeof MarkedActs>[0]['matching']
}

/** Deliveries of a filter, page by page, with acts on several. */
export function DeliveryTable({ filter, bulk }: DeliveryTableProps) {
  const key = `deliveries ${JSON.stringify(filter)}`
  const pages = usePages(key)
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set())
  const list = useResource<ListPage<DeliveryView>>(`${key} ${pages.cursor ?? ''}`, async (signal) => {
    const params = { ...filter, cursor: pages.cursor, limit: 50 }
    const { deliveries, cursor } = await get<{ deliveries: DeliveryView[]; cursor?: string }>(
      'v1/deliveries',
      params,
      signal,
    )
    return { rows: deliveries, cursor }
  })
  return (
    <>
      {mayAct() && <MarkedActs marked={marked} clear={() => setMarked(new Set())} matching={bulk} />}
      <PagedTable
        caption="Deliveries"
        list={list}
        pages={pages}
        columns={columns}
        keyOf={({ id }) => id}
        empty="No delivery matches."
        marking={mayAct() ? { marked, change: setMarked } : undefined}
      />
    </>
  )
}

const columns: readonly Column<DeliveryView>[] = [
  {
    name: 'Delivery',
    cell: ({ id }) => (
      <a class="mono" href={link(['deliveries', id])}>
        {id}
      </a>
    ),
  },
  { name: 'State', cell: (view) => <Badge word={stateWord(view)} /> },
  { name: 'Host', cell: ({ host }) => <a href={link(['hosts', host])}>{host}</a> },
  {
    name: 'Session',
    cell: ({ session }) => (session === undefined ? '' : <a href={link(['sessions', session])}>{session}</a>),
  },
  { name: 'Conversation', cell: ({ conversation }) => conversation },
  { name: 'Attempts', isFigure: true, cell: ({ attempts }) => attempts.length },
  {
    name: 'Why',
    isWide: true,
    cell: ({ reason, parkedBy }) => reason ?? (parkedBy ? `parked by ${parkedBy}` : ''),
  },
  { name: 'Since', isFigure: true, cell: ({ timeline }) => <Age at={timeline.at(-1)?.at} /> },
]

/** Delivered tells little: whether it runs, or how it ended, is what one looks for. */
export function stateWord({ state, parkedBy, attempts }: DeliveryView): string {
  if (state === 'queued' && parkedBy !== undefined) return 'parked'
  if (state !== 'delivered') return state
  const last = attempts.at(-1)
  if (last === undefined) return state
  if (last.status === 'executing') return last.unknownAt === undefined ? 'executing' : 'outcome_unknown'
  return last.status
}
