import { useState } from 'preact/hooks'
import type { Overview } from '../../contract/overview.js'
import { asRefusal, get, part, type Refusal, send } from '../api.js'
import { duration, number } from '../format.js'
import { hubs, login } from '../hub.js'
import { Head, RefusalNote } from '../parts/basics.js'
import { Table } from '../parts/table.js'
import { useResource } from '../resource.js'

// What is shown before a hub is: who are you, or which hub.

export function LoginScreen() {
  return (
    <main class="door">
      <h1>
        <span aria-hidden="true">⊢</span> Holdfast
      </h1>
      <p>This hub wants to know who looks. Take the token of a viewer or an operator.</p>
      <TokenForm onToken={login} />
      <p class="muted">
        <code>holdfast principal add operator --name NAME</code> makes one. It stays in a cookie of this
        browser that scripts cannot read, until you log out or close the browser.
      </p>
    </main>
  )
}

function TokenForm({ onToken }: { onToken: (token: string) => Promise<void> }) {
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const [isAsking, setAsking] = useState(false)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setAsking(true)
    setRefusal(undefined)
    try {
      await onToken(String(form.get('token') ?? '').trim())
    } catch (error) {
      setRefusal(asRefusal(error))
    }
    setAsking(false)
  }
  return (
    <form onSubmit={submit}>
      <div class="field">
        <label for="token">Token</label>
        <input id="token" name="token" type="password" autoComplete="current-password" required />
      </div>
      {refusal !== undefined && <RefusalNote refusal={refusal} title="Not let in:" />}
      <button type="submit" class="main" disabled={isAsking}>
        {isAsking ? 'Asking …' : 'Log in'}
      </button>
    </form>
  )
}

export function TroubleScreen({ refusal, again }: { refusal: Refusal; again: () => void }) {
  return (
    <main class="door">
      <h1>
        <span aria-hidden="true">⊢</span> Holdfast
      </h1>
      <RefusalNote refusal={refusal} title="The page could not begin:" />
      <button type="button" class="main" onClick={again}>
        Try again
      </button>
    </main>
  )
}

interface HubLine {
  readonly hub: string
  readonly overview: Overview | undefined
  readonly refusal: Refusal | undefined
}

/** Several hubs at one address: how each is, and the way to its page. */
export function HubsScreen() {
  const names = hubs.value ?? []
  const { value, refresh } = useResource(
    'hubs',
    (signal) => Promise.all(names.map((hub) => lineOf(hub, signal))),
    {
      everyMs: 5000,
    },
  )
  const isLocked = value?.some(({ refusal }) => refusal?.status === 401) === true
  const logIn = async (token: string) => {
    for (const hub of names) await send('POST', `hubs/${part(hub)}/v1/login`, { token })
    refresh()
  }
  return (
    <main class="alone">
      <Head title="Hubs">
        <p class="muted">A set of hubs: each has its own record, and its own page.</p>
      </Head>
      {isLocked && <TokenForm onToken={logIn} />}
      <Table
        caption="Hubs"
        rows={value ?? names.map((hub) => ({ hub, overview: undefined, refusal: undefined }))}
        keyOf={({ hub }) => hub}
        empty="No hub."
        columns={[
          { name: 'Hub', cell: ({ hub }) => <a href={`hubs/${part(hub)}/`}>{hub}</a> },
          { name: 'Queued', isFigure: true, cell: ({ overview }) => count(overview?.deliveries.queued) },
          { name: 'Held', isFigure: true, cell: ({ overview }) => count(overview?.lists.held?.count) },
          { name: 'Unknown', isFigure: true, cell: ({ overview }) => count(overview?.lists.unknown?.count) },
          { name: 'Fences', isFigure: true, cell: ({ overview }) => count(overview?.fences) },
          {
            name: 'Oldest queued',
            isFigure: true,
            cell: ({ overview }) =>
              overview === undefined ? '–' : duration(overview.lists.queued?.oldestAgeMs ?? 0),
          },
          { name: 'Nodes', isFigure: true, cell: ({ overview }) => count(overview?.nodes.live) },
          {
            name: 'Trouble',
            isWide: true,
            cell: ({ refusal }) => (refusal === undefined ? '' : `${refusal.code}: ${refusal.message}`),
          },
        ]}
      />
    </main>
  )
}

function count(value: number | undefined): string {
  return value === undefined ? '–' : number(value)
}

async function lineOf(hub: string, signal: AbortSignal): Promise<HubLine> {
  try {
    const overview = await get<Overview>(`hubs/${part(hub)}/v1/overview`, {}, signal)
    return { hub, overview, refusal: undefined }
  } catch (error) {
    return { hub, overview: undefined, refusal: asRefusal(error) }
  }
}
