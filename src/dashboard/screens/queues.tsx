import { useState } from 'preact/hooks'
import type { HeldEntry, UnknownEntry } from '../../contract/delivery-views.js'
import { deliveryAct, resolveAct, resolveDeliveryAct } from '../acts.js'
import { get } from '../api.js'
import { mayAct } from '../hub.js'
import { ask } from '../parts/act.js'
import { Age, Head } from '../parts/basics.js'
import { MarkedActs } from '../parts/marked.js'
import { type ListPage, PagedTable } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link } from '../route.js'

// The two lists that wait for an operator.

export function HeldScreen() {
  const pages = usePages('held')
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set())
  const list = useResource<ListPage<HeldEntry>>(`held ${pages.cursor ?? ''}`, async (signal) => {
    const params = { cursor: pages.cursor, limit: 50 }
    const { held, cursor } = await get<{ held: HeldEntry[]; cursor?: string }>('v1/held', params, signal)
    return { rows: held, cursor }
  })
  return (
    <>
      <Head title="Held">
        <p class="muted">
          Out of the queue until somebody decides: released ones are queued again, rejected ones fail.
        </p>
      </Head>
      {mayAct() && (
        <MarkedActs marked={marked} clear={() => setMarked(new Set())} matching={{ state: 'held' }} />
      )}
      <PagedTable
        caption="Held deliveries"
        list={list}
        pages={pages}
        keyOf={({ id }) => id}
        empty="Nothing is held."
        marking={mayAct() ? { marked, change: setMarked } : undefined}
        columns={[
          {
            name: 'Delivery',
            cell: ({ id }) => (
              <a class="mono" href={link(['deliveries', id])}>
                {id}
              </a>
            ),
          },
          { name: 'Why', isWide: true, cell: ({ reason }) => <Why reason={reason} /> },
          { name: 'Host', cell: ({ host }) => <a href={link(['hosts', host])}>{host}</a> },
          { name: 'Conversation', cell: ({ conversation }) => conversation },
          { name: 'Attempts', isFigure: true, cell: ({ attempts }) => attempts },
          { name: 'Held for', isFigure: true, cell: ({ sinceMs }) => <Age at={sinceMs} /> },
          ...(mayAct()
            ? [
                {
                  name: 'Decide',
                  cell: ({ id }: HeldEntry) => (
                    <span class="acts">
                      <button type="button" onClick={() => ask(deliveryAct('release', id))}>
                        Release<span class="hidden"> {id}</span>
                      </button>
                      <button type="button" onClick={() => ask(deliveryAct('reject', id))}>
                        Reject<span class="hidden"> {id}</span>
                      </button>
                    </span>
                  ),
                },
              ]
            : []),
        ]}
      />
    </>
  )
}

const heldMeanings: Readonly<Record<string, string>> = {
  poison: 'its owner crashed too often',
  retired: 'its host is retired',
  max_redrive: 'it was tried as often as is allowed',
  payload_corrupt: 'the payload does not match its digest',
  route_terminal: 'its session is closed for good',
  operator: 'an operator held it',
}

function Why({ reason }: { reason: string }) {
  const [word = ''] = reason.split(' ')
  const meaning = heldMeanings[word]
  return (
    <>
      <strong>{reason}</strong>
      {meaning !== undefined && <span class="muted"> – {meaning}</span>}
    </>
  )
}

export function UnknownScreen() {
  const pages = usePages('unknown')
  const list = useResource<ListPage<UnknownEntry>>(`unknown ${pages.cursor ?? ''}`, async (signal) => {
    const params = { cursor: pages.cursor, limit: 50 }
    const { unknown, cursor } = await get<{ unknown: UnknownEntry[]; cursor?: string }>(
      'v1/unknown',
      params,
      signal,
    )
    return { rows: unknown, cursor }
  })
  return (
    <>
      <Head title="Unknown">
        <p class="muted">
          These may or may not have happened. Nothing repeats them: find out at the target, then resolve with
          evidence.
        </p>
      </Head>
      <PagedTable
        caption="Unknown outcomes"
        list={list}
        pages={pages}
        keyOf={({ id }) => id}
        empty="Every outcome is known."
        columns={[
          {
            name: 'Attempt, effect or delivery',
            cell: ({ id }) => (
              <a class="mono" href={placeOf(id)}>
                {id}
              </a>
            ),
          },
          { name: 'Why nobody knows', isWide: true, cell: ({ reason }) => <strong>{reason}</strong> },
          {
            name: 'Host',
            cell: ({ host }) => (host === '' ? '' : <a href={link(['hosts', host])}>{host}</a>),
          },
          { name: 'Executor', cell: ({ node }) => node ?? '' },
          { name: 'Begun', isFigure: true, cell: ({ begunAt }) => <Age at={begunAt} ago /> },
          { name: 'Unknown for', isFigure: true, cell: ({ sinceMs }) => <Age at={sinceMs} /> },
          ...(mayAct()
            ? [
                {
                  name: 'Decide',
                  cell: ({ id }: UnknownEntry) => (
                    <button type="button" onClick={() => ask(actFor(id))}>
                      Resolve<span class="hidden"> {id}</span>
                    </button>
                  ),
                },
              ]
            : []),
        ]}
      />
    </>
  )
}

const effectMark = 'effect:'

function placeOf(id: string): string {
  if (id.startsWith(effectMark)) return link(['effects', id.slice(effectMark.length)])
  return link(['deliveries', id.split('/')[0] ?? id])
}

function actFor(id: string) {
  if (id.startsWith(effectMark)) return resolveAct('effect', id.slice(effectMark.length))
  return id.includes('/') ? resolveAct('attempt', id) : resolveDeliveryAct(id)
}
