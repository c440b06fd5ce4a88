import type { MessageHead } from '../../contract/overview.js'
import { resendAct } from '../acts.js'
import { get } from '../api.js'
import { forMessage } from '../commands.js'
import { bytes, number } from '../format.js'
import { mayAct, me } from '../hub.js'
import { ask } from '../parts/act.js'
import { Age, Copy, Facts, Head, Panel, RefusalNote, Time } from '../parts/basics.js'
import { Filters } from '../parts/filters.js'
import { Payload } from '../parts/payload.js'
import { type ListPage, PagedTable } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link, place } from '../route.js'
import { DeliveryTable } from './deliveries.js'

interface MessagesAnswer {
  readonly messages: MessageHead[]
  readonly cursor?: string
}

export function MessagesScreen() {
  const { query } = place.value
  const filter = Object.fromEntries(
    ['conversation', 'sender', 'key'].map((name) => [name, query.get(name) ?? undefined]),
  )
  const key = `messages ${JSON.stringify(filter)}`
  const pages = usePages(key)
  const list = useResource<ListPage<MessageHead>>(`${key} ${pages.cursor ?? ''}`, async (signal) => {
    const params = { ...filter, cursor: pages.cursor, limit: 50 }
    const { messages, cursor } = await get<MessagesAnswer>('v1/messages', params, signal)
    return { rows: messages, cursor }
  })
  return (
    <>
      <Head title="Messages">
        <p class="muted">The newest first, as far as the log reaches back; older ones by id or key.</p>
      </Head>
      <Filters
        fields={[
          { name: 'conversation', label: 'Conversation' },
          { name: 'sender', label: 'Sender' },
          { name: 'key', label: 'Idempotency key' },
        ]}
      />
      <PagedTable
        caption="Messages"
        list={list}
        pages={pages}
        keyOf={({ id }) => id}
        empty="No message matches."
        columns={[
          {
            name: 'Message',
            cell: ({ id }) => (
              <a class="mono" href={link(['messages', id])}>
                {id}
              </a>
            ),
          },
          { name: 'Conversation', cell: ({ conversation }) => conversation },
          { name: 'Sender', cell: ({ sender }) => sender },
          { name: 'Key', isWide: true, cell: ({ key: own }) => <span class="mono">{own}</span> },
          { name: 'Size', isFigure: true, cell: (message) => bytes(message.bytes) },
          {
            name: 'Settled',
            isFigure: true,
            cell: ({ settled, recipients, fanOut }) =>
              `${number(settled)} of ${number(recipients)}${fanOut === 'pending' ? ' (fan-out pending)' : ''}`,
          },
          { name: 'Accepted', isFigure: true, cell: ({ acceptedAt }) => <Age at={acceptedAt} ago /> },
        ]}
      />
    </>
  )
}

export function MessageScreen({ id }: { id: string }) {
  const { value, refusal } = useResource(`message ${id}`, async (signal) => {
    return (await get<MessagesAnswer>('v1/messages', { id }, signal)).messages
  })
  const message = value?.[0]
  return (
    <>
      <Head
        title={`Message ${id}`}
        aside={
          message !== undefined &&
          mayAct() && (
            <button type="button" onClick={() => ask(resendAct(id))}>
              Send again
            </button>
          )
        }
      />
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      {value?.length === 0 && (
        <p class="empty">No such message: it was never accepted, or the retention took it.</p>
      )}
      {message !== undefined && <Message message={message} />}
    </>
  )
}

function Message({ message }: { message: MessageHead }) {
  const { id, conversation, sender, key, parent, resendOf, contentType, sha256, acceptedAt, settledAt } =
    message
  return (
    <>
      <div class="columns">
        <Panel title="As it stands">
          <Facts
            facts={[
              ['Conversation', <a href={link(['deliveries'], { conversation })}>{conversation}</a>],
              ['Sender', sender],
              ['Idempotency key', <span class="mono">{key}</span>],
              ['Accepted', <Time at={acceptedAt} />],
              ['Settled', settledAt === undefined ? 'not yet' : <Time at={settledAt} />],
              ['Recipients', `${number(message.settled)} of ${number(message.recipients)} settled`],
              ['Fan-out', message.fanOut],
              [
                'Parent',
                parent === undefined ? undefined : <a href={link(['messages', parent])}>{parent}</a>,
              ],
              [
                'Resend of',
                resendOf === undefined ? undefined : <a href={link(['messages', resendOf])}>{resendOf}</a>,
              ],
              ['Content type', contentType],
              ['SHA-256', <span class="mono">{sha256}</span>],
            ]}
          />
          <p class="copies">
            <Copy label="Copy: redis-cli row" text={forMessage.redis(id)} />
            <Copy label="redis-cli payload" text={forMessage.redisPayload(id)} />
            <Copy label="holdfast show" text={forMessage.cli(id)} />
          </p>
        </Panel>
        <Panel title="Payload" aside={<span class="muted">{bytes(message.bytes)}</span>}>
          {me.value?.payloads === true ? (
            <Payload key={id} message={id} />
          ) : (
            <p class="muted">Viewers see no payloads (setting viewer_payloads).</p>
          )}
        </Panel>
      </div>
      <Panel title="Its deliveries">
        <DeliveryTable filter={{ message: id }} />
      </Panel>
    </>
  )
}
