import type { SessionView } from '../../contract/session-views.js'
import { closeSessionAct, fenceAct, rehomeAct } from '../acts.js'
import { get, part } from '../api.js'
import { number } from '../format.js'
import { mayAct } from '../hub.js'
import { ask } from '../parts/act.js'
import { Age, Badge, Facts, Head, Panel, RefusalNote, Time } from '../parts/basics.js'
import { type ListPage, PagedTable } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link } from '../route.js'
import { DeliveryTable } from './deliveries.js'

export function SessionsScreen() {
  const pages = usePages('sessions')
  const list = useResource<ListPage<SessionView>>(`sessions ${pages.cursor ?? ''}`, async (signal) => {
    const params = { cursor: pages.cursor, limit: 50 }
    const { sessions, cursor } = await get<{ sessions: SessionView[]; cursor?: string }>(
      'v1/sessions',
      params,
      signal,
    )
    return { rows: sessions, cursor }
  })
  return (
    <>
      <Head title="Sessions">
        <p class="muted">Addressable targets on hosts, by when they were first opened.</p>
      </Head>
      <PagedTable
        caption="Sessions"
        list={list}
        pages={pages}
        keyOf={({ session }) => session}
        empty="No session was ever opened."
        columns={[
          { name: 'Session', cell: ({ session }) => <a href={link(['sessions', session])}>{session}</a> },
          { name: 'State', cell: (session) => <SessionState session={session} /> },
          { name: 'Host', cell: ({ host }) => <a href={link(['hosts', host])}>{host}</a> },
          { name: 'Scope', isWide: true, cell: ({ scope }) => <span class="mono">{scope}</span> },
          { name: 'Not settled', isFigure: true, cell: ({ unfinished }) => number(unfinished) },
          {
            name: 'Crashes',
            isFigure: true,
            cell: ({ crashes, restartBudget }) => `${crashes} of ${restartBudget}`,
          },
          { name: 'Opened', isFigure: true, cell: ({ openedAt }) => <Age at={openedAt} ago /> },
          ...(mayAct()
            ? [{ name: 'Decide', cell: (session: SessionView) => <SessionActs session={session} /> }]
            : []),
        ]}
      />
    </>
  )
}

function SessionState({ session: { state, terminal, reason } }: { session: SessionView }) {
  if (state !== 'closed') return <Badge word={state} />
  return (
    <Badge
      word="closed"
      label={`closed${terminal === true ? ' for good' : ''}${reason ? ` (${reason})` : ''}`}
    />
  )
}

function SessionActs({ session }: { session: SessionView }) {
  const named = <span class="hidden"> {session.session}</span>
  return (
    <span class="acts">
      <button type="button" onClick={() => ask(rehomeAct(session))}>
        Rehome{named}
      </button>
      {session.state === 'open' && (
        <button type="button" onClick={() => ask(closeSessionAct(session))}>
          Close{named}
        </button>
      )}
    </span>
  )
}

export function SessionScreen({ id }: { id: string }) {
  const { value, refusal } = useResource(`session ${id}`, (signal) =>
    get<SessionView>(`v1/sessions/${part(id)}`, {}, signal),
  )
  return (
    <>
      <Head
        title={`Session ${id}`}
        aside={
          value !== undefined &&
          mayAct() && (
            <>
              <SessionActs session={value} />
              <button type="button" onClick={() => ask(fenceAct(`session:${id}`))}>
                Fence
              </button>
            </>
          )
        }
      >
        {value !== undefined && <SessionState session={value} />}
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      {value !== undefined && (
        <>
          <Panel title="As it stands">
            <SessionFacts session={value} />
          </Panel>
          <Panel title="Live deliveries on its host">
            <DeliveryTable filter={{ session: id, host: value.host }} />
          </Panel>
        </>
      )}
    </>
  )
}

function SessionFacts({ session: view }: { session: SessionView }) {
  const at = (ms: number | undefined) => (ms === undefined ? undefined : <Time at={ms} />)
  return (
    <Facts
      facts={[
        ['Host', <a href={link(['hosts', view.host])}>{view.host}</a>],
        ['Scope', <span class="mono">{view.scope}</span>],
        ['Epoch', view.epoch],
        [
          'Parent',
          view.parent === undefined ? undefined : <a href={link(['sessions', view.parent])}>{view.parent}</a>,
        ],
        ['Deliveries not settled', number(view.unfinished)],
        ['Crashes of its budget', `${view.crashes} of ${view.restartBudget}`],
        ['Opened', at(view.openedAt)],
        ['Opened by', view.openedBy],
        ['Closed', at(view.closedAt)],
        ['Closed by', view.closedBy],
        ['Drained', view.drained === undefined ? undefined : view.drained ? 'yes' : 'no'],
        ['Abandoned', view.abandoned],
        ['Reported missing', at(view.missingAt)],
        ['By attempt', view.missingAttempt],
        ['Rehomed', at(view.rehomedAt)],
        ['Rehomed from', view.rehomedFrom],
        ['Deliveries on their way from', view.movingFrom],
      ]}
    />
  )
}
