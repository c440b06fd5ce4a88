import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { actorName, asRefusal, type Refusal, rememberActor } from '../api.js'
import { me } from '../hub.js'
import { frozen, refreshAll } from '../live.js'
import { Note, RefusalNote } from './basics.js'

/** What is asked for before an act. */
export interface Field {
  readonly name: string
  readonly label: string
  readonly kind?: 'text' | 'lines' | 'choice' | 'tick' | 'time' | 'number'
  readonly options?: readonly (readonly [value: string, label: string])[]
  readonly hint?: string
  readonly value?: string
  readonly isOptional?: boolean
}

export type Values = Readonly<Record<string, string>>

/** An operator's act: what it will do, what it needs, and what it did. */
export interface Act {
  readonly title: string
  /** What follows from it, before it is done. */
  readonly consequence: string
  readonly verb: string
  /** Cannot be taken back. */
  readonly isFinal?: boolean
  readonly fields?: readonly Field[]
  /** Says what happened. @throws Refusal */
  readonly run: (values: Values) => Promise<string>
}

export const reasonField: Field = {
  name: 'reason',
  label: 'Reason',
  hint: 'Kept in the record with who did it.',
}

const asked = signal<Act | undefined>(undefined)
/** What was done last, for everyone who cannot see what changed. */
const done = signal<readonly { readonly id: number; readonly text: string }[]>([])
let doneCount = 0

/** Opens the dialog of an act. */
export function ask(act: Act): void {
  asked.value = act
}

export function tell(text: string): void {
  doneCount += 1
  const entry = { id: doneCount, text }
  done.value = [...done.value.slice(-3), entry]
  setTimeout(() => {
    done.value = done.value.filter(({ id }) => id !== entry.id)
  }, 8000)
}

/** Where the acts of all screens are decided. */
export function ActDialog() {
  const act = asked.value
  return act === undefined ? null : <OpenAct key={act.title} act={act} />
}

function OpenAct({ act }: { act: Act }) {
  const { title, consequence, verb, isFinal = false, fields = [] } = act
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const [isRunning, setRunning] = useState(false)
  const dialog = useModal(() => {
    asked.value = undefined
  })
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const given = new FormData(form)
    const values = Object.fromEntries([...given].map(([name, value]) => [name, String(value).trim()]))
    if (values['actor'] !== undefined) rememberActor(values['actor'])
    setRunning(true)
    setRefusal(undefined)
    try {
      tell(await act.run(values))
      asked.value = undefined
      refreshAll()
    } catch (error) {
      setRefusal(asRefusal(error))
      setRunning(false)
    }
  }
  return (
    <dialog ref={dialog} aria-labelledby="act-title">
      <form onSubmit={submit}>
        <h2 id="act-title">{title}</h2>
        <p>{consequence}</p>
        {isFinal && <Note tone="warn">This cannot be taken back.</Note>}
        <ActorField />
        {fields.map((field) => (
          <FieldInput key={field.name} field={field} />
        ))}
        {refusal !== undefined && <RefusalNote refusal={refusal} title="Refused:" />}
        <footer>
          <button type="button" onClick={() => dialog.current?.close()}>
            Go back
          </button>
          <button type="submit" class={isFinal ? 'final' : 'main'} disabled={isRunning}>
            {isRunning ? 'Asking …' : verb}
          </button>
        </footer>
      </form>
    </dialog>
  )
}

/** A dialog that is open for as long as it is there; rows do not move under it. */
export function useModal(onClose: () => void) {
  const dialog = useRef<HTMLDialogElement>(null)
  const closing = useRef(onClose)
  closing.current = onClose
  useEffect(() => {
    const { current } = dialog
    const before = document.activeElement
    const onCloseEvent = () => closing.current()
    current?.addEventListener('close', onCloseEvent)
    current?.showModal()
    frozen.value += 1
    return () => {
      frozen.value -= 1
      current?.removeEventListener('close', onCloseEvent)
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return dialog
}

/** Who acts: the principal, or whoever sits there while no principal exists. */
export function ActorField() {
  if (me.value?.anonymous !== true) {
    return (
      <p class="muted">
        In the record as <strong>{me.value?.name}</strong>.
      </p>
    )
  }
  const field: Field = {
    name: 'actor',
    label: 'Your name',
    hint: 'Kept in the record: no principal exists yet, so nobody is asked for a token.',
    value: actorName.value,
  }
  return <FieldInput field={field} />
}

export function FieldInput({ field }: { field: Field }) {
  const { name, label, kind = 'text', options = [], hint, value = '', isOptional = false } = field
  const id = `field-${name}`
  const described = hint === undefined ? {} : { 'aria-describedby': `${id}-hint` }
  const common = { id, name, required: !isOptional, ...described }
  if (kind === 'tick') {
    return (
      <div class="field tick">
        <input {...common} type="checkbox" value="yes" required={!isOptional} />
        <label for={id}>{label}</label>
        {hint !== undefined && <small id={`${id}-hint`}>{hint}</small>}
      </div>
    )
  }
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isOptional && <span class="muted"> (may be left out)</span>}
      </label>
      {kind === 'choice' ? (
        <select {...common} value={value}>
          {options.map(([each, text]) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
      ) : kind === 'lines' ? (
        <textarea {...common} rows={3} maxLength={1000} defaultValue={value} />
      ) : (
        <input
          {...common}
          type={kind === 'time' ? 'datetime-local' : kind === 'number' ? 'number' : 'text'}
          min={kind === 'number' ? 0 : undefined}
          maxLength={1000}
          defaultValue={value}
          autoComplete="off"
        />
      )}
      {hint !== undefined && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  )
}

/** What was done, said aloud and shown for a while. */
export function Done() {
  return (
    <div class="done" role="status" aria-live="polite">
      {done.value.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  )
}
