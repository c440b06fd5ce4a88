import { signal } from '@preact/signals'
import { useRef, useState } from 'preact/hooks'
import type { BulkReply } from '../../contract/delivery-views.js'
import type { BulkFilter, OperatorAct } from '../../contract/hub.js'
import { asRefusal, part, Refusal, rememberActor, send } from '../api.js'
import { number, plural } from '../format.js'
import { refreshAll } from '../live.js'
import { ActorField, FieldInput, reasonField, tell, useModal } from './act.js'
import { RefusalNote } from './basics.js'

/** Several deliveries: those that are marked, or all that a filter names. */
export type Several =
  | { readonly kind: 'marked'; readonly ids: readonly string[] }
  | { readonly kind: 'matching'; readonly filter: BulkFilter }

const verbs: Readonly<Record<OperatorAct, readonly [title: string, consequence: string]>> = {
  release: ['Release', 'They are queued again, and pass the holds that stand now, once.'],
  reject: ['Reject', 'They fail, and will not run.'],
  hold: ['Hold', 'Idle ones go to the held queue; what runs is refused.'],
  cancel: ['Cancel', 'Idle and held ones fail, and will not run; what runs is refused.'],
}

const asked = signal<{ act: OperatorAct; several: Several } | undefined>(undefined)

/** Opens the dialog of an act on several. */
export function askBulk(act: OperatorAct, several: Several): void {
  asked.value = { act, several }
}

export function BulkDialog() {
  const open = asked.value
  return open === undefined ? null : <OpenBulk act={open.act} several={open.several} />
}

interface Progress {
  readonly matched: number
  readonly done: number
  readonly refused: BulkReply['refused']
}
const nothing: Progress = { matched: 0, done: 0, refused: [] }

type Step = 'before' | 'counting' | 'counted' | 'acting' | 'over'

function OpenBulk({ act, several }: { act: OperatorAct; several: Several }) {
  const [title, consequence] = verbs[act]
  const [step, setStep] = useState<Step>(several.kind === 'marked' ? 'counted' : 'before')
  const [total, setTotal] = useState(several.kind === 'marked' ? several.ids.length : 0)
  const [progress, setProgress] = useState<Progress>(nothing)
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const isStopped = useRef(false)
  const dialog = useModal(() => {
    isStopped.current = true
    asked.value = undefined
    refreshAll()
  })

  const run = async (work: () => AsyncGenerator<Progress>, after: Step) => {
    isStopped.current = false
    setRefusal(undefined)
    let last = nothing
    try {
      for await (const each of work()) {
        last = each
        setProgress(each)
        if (isStopped.current) break
      }
    } catch (error) {
      setRefusal(asRefusal(error))
    }
    setStep(after)
    return last
  }
  const count = async () => {
    setStep('counting')
    if (several.kind === 'marked') return
    const { matched } = await run(() => byPages(act, several.filter, 'to count', true), 'counted')
    setTotal(matched)
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const given = new FormData(event.currentTarget as HTMLFormElement)
    const reason = String(given.get('reason') ?? '').trim()
    const actor = given.get('actor')
    if (actor !== null) rememberActor(String(actor).trim())
    setStep('acting')
    setProgress(nothing)
    const work = () =>
      several.kind === 'marked'
        ? oneByOne(act, several.ids, reason)
        : byPages(act, several.filter, reason, false)
    const { done, refused } = await run(work, 'over')
    tell(`${title}: ${number(done)} done, ${number(refused.length)} refused`)
  }

  return (
    <dialog ref={dialog} aria-labelledby="bulk-title">
      <form onSubmit={submit}>
        <h2 id="bulk-title">
          {title}{' '}
          {several.kind === 'marked'
            ? plural(several.ids.length, 'delivery', 'deliveries')
            : 'all that match'}
        </h2>
        <p>{consequence}</p>
        {several.kind === 'matching' && <p>{described(several.filter)}</p>}
        {step === 'before' && <p>First they are counted; nothing is changed by that.</p>}
        {(step === 'counting' || step === 'counted') && several.kind === 'matching' && (
          <p role="status">
            <strong>{plural(progress.matched, 'delivery', 'deliveries')}</strong>{' '}
            {step === 'counting'
              ? 'counted so far …'
              : isStopped.current
                ? 'counted until it was stopped'
                : 'match now'}
          </p>
        )}
        {step === 'counted' && (
          <>
            <ActorField />
            <FieldInput field={reasonField} />
            <FieldInput
              field={{
                name: 'sure',
                label: `Yes, ${title.toLowerCase()} ${several.kind === 'marked' || !isStopped.current ? number(total) : 'all that match'}`,
                kind: 'tick',
              }}
            />
          </>
        )}
        {(step === 'acting' || step === 'over') && (
          <Course progress={progress} total={total} isOver={step === 'over'} />
        )}
        {refusal !== undefined && <RefusalNote refusal={refusal} title="Stopped:" />}
        <footer>
          {(step === 'counting' || step === 'acting') && (
            <button
              type="button"
              onClick={() => {
                isStopped.current = true
              }}
            >
              Stop
            </button>
          )}
          <button type="button" disabled={step === 'acting'} onClick={() => dialog.current?.close()}>
            {step === 'over' ? 'Close' : 'Go back'}
          </button>
          {step === 'before' && (
            <button type="button" class="main" onClick={count}>
              Count
            </button>
          )}
          {step === 'counted' && (
            <button type="submit" class="final" disabled={total === 0}>
              {title}
            </button>
          )}
        </footer>
      </form>
    </dialog>
  )
}

function Course({ progress, total, isOver }: { progress: Progress; total: number; isOver: boolean }) {
  const { done, refused } = progress
  return (
    <div>
      <progress
        aria-label="How far it is"
        max={Math.max(total, 1)}
        value={isOver ? Math.max(total, 1) : done + refused.length}
      />
      <p role="status">
        {number(done)} done, {number(refused.length)} refused{isOver ? '.' : ' …'}
      </p>
      {refused.length > 0 && (
        <ul class="refused">
          {refused.slice(0, 50).map(({ id, code, detail }) => (
            <li key={id}>
              <span class="mono">{id}</span> <strong class="mono">{code}</strong> {detail}
            </li>
          ))}
          {refused.length > 50 && <li>and {number(refused.length - 50)} more</li>}
        </ul>
      )}
    </div>
  )
}

function described(filter: BulkFilter): string {
  const parts = Object.entries(filter).filter(([, value]) => value !== undefined && value !== '')
  return `Deliveries with ${parts.map(([name, value]) => `${name} ${value}`).join(', ')}.`
}

const pageSize = 500

/** Page by page, each as one call of the hub. */
async function* byPages(
  act: OperatorAct,
  filter: BulkFilter,
  reason: string,
  dryRun: boolean,
): AsyncGenerator<Progress> {
  let sum = nothing
  let cursor: string | undefined
  do {
    const body = { filter, reason, dryRun, limit: pageSize, ...(cursor === undefined ? {} : { cursor }) }
    const page = await send<BulkReply>('POST', `v1/deliveries/${act}`, body)
    sum = {
      matched: sum.matched + page.matched,
      done: sum.done + page.done,
      refused: [...sum.refused, ...page.refused],
    }
    yield sum
    cursor = page.cursor
  } while (cursor !== undefined)
}

async function* oneByOne(act: OperatorAct, ids: readonly string[], reason: string): AsyncGenerator<Progress> {
  let sum: Progress = { ...nothing, matched: ids.length }
  for (const id of ids) {
    try {
      await send('POST', `v1/deliveries/${part(id)}/${act}`, { reason })
      sum = { ...sum, done: sum.done + 1 }
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 0 || error.status >= 500) throw error
      sum = { ...sum, refused: [...sum.refused, { id, code: error.code, detail: error.message }] }
    }
    yield sum
  }
}
