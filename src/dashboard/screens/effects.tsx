import type { EffectView } from '../../contract/effect-views.js'
import { resolveAct } from '../acts.js'
import { get, part } from '../api.js'
import { mayAct } from '../hub.js'
import { ask } from '../parts/act.js'
import { Age, Badge, Facts, Head, Panel, RefusalNote, Time } from '../parts/basics.js'
import { Filters } from '../parts/filters.js'
import { type ListPage, PagedTable } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link, place } from '../route.js'

export function EffectsScreen() {
  const executing = place.value.query.get('executing') ?? undefined
  const pages = usePages(`effects ${executing ?? ''}`)
  const list = useResource<ListPage<EffectView>>(
    `effects ${executing ?? ''} ${pages.cursor ?? ''}`,
    async (signal) => {
      const params = { executing, cursor: pages.cursor, limit: 50 }
      const { effects, cursor } = await get<{ effects: EffectView[]; cursor?: string }>(
        'v1/effects',
        params,
        signal,
      )
      return { rows: effects, cursor }
    },
  )
  return (
    <>
      <Head title="Effects">
        <p class="muted">Actions outside deliveries, each at most once; by when they were first claimed.</p>
      </Head>
      <Filters fields={[{ name: 'executing', label: 'Executing', options: ['true', 'false'] }]} />
      <PagedTable
        caption="Effects"
        list={list}
        pages={pages}
        keyOf={({ id }) => id}
        empty="No effect matches."
        columns={[
          { name: 'Effect', cell: ({ id }) => <a href={link(['effects', id])}>{id}</a> },
          { name: 'Status', cell: (effect) => <Badge word={effectWord(effect)} /> },
          { name: 'Type', cell: ({ type }) => type },
          { name: 'Executor', isWide: true, cell: ({ executor }) => executor },
          { name: 'Epoch', isFigure: true, cell: ({ epoch }) => epoch },
          { name: 'Takeovers', isFigure: true, cell: ({ takeovers }) => takeovers },
          { name: 'Started', isFigure: true, cell: ({ startedAt }) => <Age at={startedAt} ago /> },
        ]}
      />
    </>
  )
}

function effectWord({ status, unknownAt }: EffectView): string {
  return status === 'executing' && unknownAt !== undefined ? 'outcome_unknown' : status
}

export function EffectScreen({ id }: { id: string }) {
  const { value, refusal } = useResource(`effect ${id}`, (signal) =>
    get<EffectView>(`v1/effects/${part(id)}`, {}, signal),
  )
  const mayResolve = value?.status === 'executing' && mayAct()
  return (
    <>
      <Head
        title={`Effect ${id}`}
        aside={
          mayResolve && (
            <button type="button" class="main" onClick={() => ask(resolveAct('effect', id))}>
              Resolve
            </button>
          )
        }
      >
        {value !== undefined && <Badge word={effectWord(value)} />}
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      {value !== undefined && (
        <Panel title="As it stands">
          <EffectFacts effect={value} />
        </Panel>
      )}
    </>
  )
}

function EffectFacts({ effect }: { effect: EffectView }) {
  const at = (ms: number | undefined) => (ms === undefined ? undefined : <Time at={ms} />)
  const text = (body: string | undefined) =>
    body === undefined ? undefined : <pre class="small">{body}</pre>
  return (
    <Facts
      facts={[
        ['Type', effect.type],
        ['Hash of what is meant', <span class="mono">{effect.payloadHash}</span>],
        ['Executor', effect.executor],
        ['Epoch', effect.epoch],
        ['Claimed', at(effect.claimedAt)],
        ['Started', at(effect.startedAt)],
        ['Settled', at(effect.settledAt)],
        ['Outcome', effect.outcome],
        ['Result', text(effect.result)],
        ['Error', effect.errorCode],
        ['Error body', text(effect.errorJson)],
        ['Unknown since', at(effect.unknownAt)],
        ['Unknown because', effect.unknownReason],
        ['Takeovers', effect.takeovers],
        ['Taken from', effect.takenFrom],
        ['On the basis', effect.basis],
        ['Late reports', effect.lateReports],
        ['Resolved by', effect.resolvedBy],
        ['Evidence', effect.evidence],
        ['Bodies pruned', at(effect.bodiesPrunedAt)],
      ]}
    />
  )
}
