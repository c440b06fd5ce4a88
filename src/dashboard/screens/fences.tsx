import type { FenceView } from '../../contract/host-views.js'
import { fenceAct, liftAct } from '../acts.js'
import { get } from '../api.js'
import { mayAct } from '../hub.js'
import { recordNow } from '../live.js'
import { ask } from '../parts/act.js'
import { Age, Badge, Head, Note, RefusalNote, Time } from '../parts/basics.js'
import { Table } from '../parts/table.js'
import { useResource } from '../resource.js'

export function FencesScreen() {
  const { value, refusal } = useResource('fences', async (signal) => {
    return (await get<{ fences: FenceView[] }>('v1/fences', {}, signal)).fences
  })
  return (
    <>
      <Head
        title="Fences"
        aside={
          mayAct() && (
            <button type="button" class="main" onClick={() => ask(fenceAct())}>
              New fence
            </button>
          )
        }
      >
        <p class="muted">Read in the transaction of every claim and begin: every node sees the same gate.</p>
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      {value?.some(({ known }) => !known) === true && (
        <Note tone="warn">! A field that no rule reads stands among them: it fences nothing.</Note>
      )}
      {value !== undefined && (
        <Table
          caption="Fences"
          rows={value}
          keyOf={({ fence }) => fence}
          empty="No fence stands."
          columns={[
            { name: 'Kind', cell: ({ fence }) => <Badge word={fence.split(':')[0] ?? ''} /> },
            {
              name: 'Scope',
              cell: ({ fence }) => <span class="mono">{fence.slice(fence.indexOf(':') + 1)}</span>,
            },
            {
              name: 'Reason',
              isWide: true,
              cell: ({ reason, known }) => (
                <>
                  {reason}
                  {!known && <strong> (no rule reads this field)</strong>}
                </>
              ),
            },
            { name: 'By', cell: ({ actor }) => actor ?? '' },
            { name: 'Stands for', isFigure: true, cell: ({ at }) => <Age at={at} /> },
            { name: 'Lapses', cell: ({ until }) => <Lapse until={until} /> },
            ...(mayAct()
              ? [
                  {
                    name: 'Decide',
                    cell: (fence: FenceView) =>
                      fence.known && (
                        <button type="button" onClick={() => ask(liftAct(fence))}>
                          Lift<span class="hidden"> {fence.fence}</span>
                        </button>
                      ),
                  },
                ]
              : []),
          ]}
        />
      )}
    </>
  )
}

function Lapse({ until }: { until: number | undefined }) {
  if (until === undefined) return <span class="muted">when lifted</span>
  if (until <= recordNow()) return <span>lapsed</span>
  return <Time at={until} />
}
