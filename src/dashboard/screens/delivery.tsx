import type { AttemptView, DeliveryView, TimelineEntry, WhyReply } from '../../contract/delivery-views.js'
import type { MessageHead } from '../../contract/overview.js'
import { deliveryAct, resolveAct, resolveDeliveryAct } from '../acts.js'
import { get, part } from '../api.js'
import { forDelivery } from '../commands.js'
import { bytes, duration, words } from '../format.js'
import { mayAct, me } from '../hub.js'
import { ask } from '../parts/act.js'
import { Age, Badge, Copy, Facts, Head, Note, Panel, RefusalNote, Time } from '../parts/basics.js'
import { Payload } from '../parts/payload.js'
import { Table } from '../parts/table.js'
import { useResource } from '../resource.js'
import { link } from '../route.js'
import { stateWord } from './deliveries.js'

interface Read {
  readonly view: DeliveryView
  readonly why: WhyReply
  readonly message: MessageHead | undefined
}

export function DeliveryScreen({ id }: { id: string }) {
  const { value, refusal } = useResource<Read>(`delivery ${id}`, async (signal) => {
    const [view, why] = await Promise.all([
      get<DeliveryView>(`v1/deliveries/${part(id)}`, {}, signal),
      get<WhyReply>(`v1/deliveries/${part(id)}/why`, {}, signal),
    ])
    const { messages } = await get<{ messages: MessageHead[] }>('v1/messages', { id: view.message }, signal)
    return { view, why, message: messages[0] }
  })
  return (
    <>
      <Head title={`Delivery ${id}`} aside={value !== undefined && <Acts view={value.view} />}>
        {value !== undefined && <Badge word={stateWord(value.view)} />}
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      {value !== undefined && <Delivery {...value} />}
    </>
  )
}

function Acts({ view: { id, state, attempts } }: { view: DeliveryView }) {
  if (!mayAct()) return null
  const last = attempts.at(-1)
  const isOpen = last?.status === 'executing'
  const isOver =
    state === 'failed' ||
    (state === 'delivered' && last !== undefined && !isOpen && last.status !== 'not_sent')
  return (
    <>
      {state === 'held' && (
        <>
          <button type="button" class="main" onClick={() => ask(deliveryAct('release', id))}>
            Release
          </button>
          <button type="button" onClick={() => ask(deliveryAct('reject', id))}>
            Reject
          </button>
        </>
      )}
      {isOpen && (
        <button
          type="button"
          class={last?.unknownAt === undefined ? '' : 'main'}
          onClick={() => ask(resolveAct('attempt', last?.id ?? ''))}
        >
          Resolve
        </button>
      )}
      {state === 'unknown' && (
        <button type="button" class="main" onClick={() => ask(resolveDeliveryAct(id))}>
          Resolve
        </button>
      )}
      {!isOver && state !== 'held' && state !== 'unknown' && (
        <button type="button" onClick={() => ask(deliveryAct('hold', id))}>
          Hold
        </button>
      )}
      {!isOver && state !== 'unknown' && (
        <button type="button" onClick={() => ask(deliveryAct('cancel', id))}>
          Cancel
        </button>
      )}
    </>
  )
}

function Delivery({ view, why, message }: Read) {
  const { id, host, session, conversation, epoch, owner, incarnation, takeovers } = view
  return (
    <>
      <Note tone={toneOf(why.reason)}>
        <strong>
          {words(why.reason)}
          {why.detail === '' ? '' : ': '}
        </strong>
        {why.detail}
      </Note>
      <div class="columns">
        <Panel title="As it stands">
          <Facts
            facts={[
              [
                'Message',
                <a class="mono" href={link(['messages', view.message])}>
                  {view.message}
                </a>,
              ],
              ['Conversation', <a href={link(['deliveries'], { conversation })}>{conversation}</a>],
              ['Host', <a href={link(['hosts', host])}>{host}</a>],
              [
                'Session',
                session === undefined ? undefined : <a href={link(['sessions', session])}>{session}</a>,
              ],
              ['Owner', owner === undefined ? undefined : `${owner}, incarnation ${incarnation ?? '?'}`],
              ['Epoch', epoch],
              ['Takeovers after crashes', takeovers],
              ['Parked by', view.parkedBy],
              ['Sender', message?.sender],
              ['Key', message === undefined ? undefined : <span class="mono">{message.key}</span>],
            ]}
          />
          <p class="copies">
            <Copy label="Copy: redis-cli row" text={forDelivery.redis(id)} />
            <Copy label="redis-cli why" text={forDelivery.redisWhy(id)} />
            <Copy label="holdfast show" text={forDelivery.cli(id)} />
            <Copy label="holdfast why" text={forDelivery.cliWhy(id)} />
          </p>
        </Panel>
        <Panel title="Timeline">
          <Timeline entries={view.timeline} />
        </Panel>
      </div>
      <Panel title="Attempts">
        <Attempts attempts={view.attempts} />
      </Panel>
      {message !== undefined && (
        <Panel title="Payload" aside={<span class="muted">{bytes(message.bytes)}</span>}>
          {me.value?.payloads === true ? (
            <Payload key={message.id} message={message.id} />
          ) : (
            <p class="muted">Viewers see no payloads (setting viewer_payloads).</p>
          )}
          <p class="muted mono">sha256 {message.sha256}</p>
        </Panel>
      )}
    </>
  )
}

function toneOf(reason: string): 'calm' | 'good' | 'warn' | 'bad' {
  if (['held', 'unknown', 'stranded', 'overdue', 'failed', 'terminal'].includes(reason)) return 'bad'
  if (['fenced', 'parked'].includes(reason)) return 'warn'
  return reason === 'done' ? 'good' : 'calm'
}

function Timeline({ entries }: { entries: readonly TimelineEntry[] }) {
  return (
    <ol class="timeline">
      {entries.map((entry, at) => {
        const before = entries[at - 1]
        return (
          // Two things may happen in one millisecond.
          <li key={`${entry.at} ${entry.what}`}>
            <Time at={entry.at} />
            {before !== undefined && <span class="muted"> +{duration(entry.at - before.at)}</span>}
            <div>
              <strong>{entry.what}</strong>
              {entry.epoch !== undefined && <span class="tag">epoch {entry.epoch}</span>}
              {entry.actor !== undefined && <span> by {entry.actor}</span>}
              {entry.reason !== undefined && !entry.what.endsWith(entry.reason) && (
                <span class="muted"> – {entry.reason}</span>
              )}
            </div>
          </li>
        )
      })}
    </ol>
  )
}

function Attempts({ attempts }: { attempts: readonly AttemptView[] }) {
  return (
    <Table
      caption="Attempts"
      rows={[...attempts].reverse()}
      keyOf={({ id }) => id}
      empty="No attempt was begun: nothing ran."
      columns={[
        { name: 'Attempt', cell: ({ id }) => <span class="mono">{id.slice(id.lastIndexOf('/') + 1)}</span> },
        {
          name: 'Status',
          cell: ({ status, unknownAt }) => (
            <Badge word={status === 'executing' && unknownAt !== undefined ? 'outcome_unknown' : status} />
          ),
        },
        { name: 'Node', cell: ({ node, incarnation }) => `${node} #${incarnation}` },
        { name: 'Begun', cell: ({ begunAt }) => <Age at={begunAt} ago /> },
        {
          name: 'Took',
          isFigure: true,
          cell: ({ begunAt, settledAt }) => (settledAt === undefined ? '–' : duration(settledAt - begunAt)),
        },
        { name: 'What is known', isWide: true, cell: (attempt) => <Known attempt={attempt} /> },
      ]}
    />
  )
}

function Known({ attempt }: { attempt: AttemptView }) {
  const { result, errorCode, errorJson, unknownReason, endedAt, resolvedBy, evidence, lateReports } = attempt
  return (
    <>
      {errorCode !== undefined && <div class="mono">{errorCode}</div>}
      {unknownReason !== undefined && unknownReason !== errorCode && <div>{unknownReason}</div>}
      {endedAt !== undefined && <div>its executor has ended</div>}
      {result !== undefined && <pre class="small">{result}</pre>}
      {errorJson !== undefined && <pre class="small">{errorJson}</pre>}
      {resolvedBy !== undefined && (
        <div>
          resolved by {resolvedBy}: {evidence}
        </div>
      )}
      {lateReports !== undefined && lateReports > 0 && <div>late reports: {lateReports}</div>}
    </>
  )
}
