import { useState } from 'preact/hooks'
import { asRefusal, getBytes, part, type Refusal } from '../api.js'
import { bytes as size } from '../format.js'
import { hex, laidOut } from '../payload-text.js'
import { RefusalNote } from './basics.js'

type Form = 'text' | 'json' | 'hex'
const shownAtMost = 64 * 1024

interface Loaded {
  readonly bytes: Uint8Array
  readonly contentType: string
}

/** What a message carries, read when it is asked for: as text, as JSON, or byte by byte. */
export function Payload({ message }: { message: string }) {
  const [loaded, setLoaded] = useState<Loaded | undefined>(undefined)
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const [form, setForm] = useState<Form>('text')
  const [isWhole, setWhole] = useState(false)
  const load = async () => {
    setRefusal(undefined)
    try {
      const { bytes, headers } = await getBytes(`v1/messages/${part(message)}/payload`)
      const contentType = decodeURIComponent(headers.get('holdfast-content-type') ?? '')
      setLoaded({ bytes, contentType })
      setForm(firstForm(bytes, contentType))
    } catch (error) {
      setRefusal(asRefusal(error))
    }
  }
  if (loaded === undefined) {
    return (
      <>
        {refusal !== undefined && <RefusalNote refusal={refusal} />}
        <p>
          <button type="button" onClick={load}>
            Show the payload
          </button>
        </p>
      </>
    )
  }
  const { bytes, contentType } = loaded
  const shown = isWhole ? bytes : bytes.subarray(0, shownAtMost)
  const forms: readonly Form[] = ['text', 'json', 'hex']
  return (
    <div class="payload">
      <fieldset class="forms">
        <legend class="hidden">Form</legend>
        {forms.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="form"
              checked={form === each}
              disabled={each === 'json' && !isJson(bytes)}
              onChange={() => setForm(each)}
            />
            {each === 'json' ? 'JSON' : each}
          </label>
        ))}
        <span class="muted">
          {size(bytes.length)}, {contentType || 'no content type'}
        </span>
      </fieldset>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>{written(shown, form)}</pre>
      {shown.length < bytes.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {size(bytes.length)}
        </button>
      )}
    </div>
  )
}

function written(bytes: Uint8Array, form: Form): string {
  if (form === 'hex') return hex(bytes)
  const text = new TextDecoder().decode(bytes)
  return form === 'json' ? laidOut(text) : text
}

function firstForm(bytes: Uint8Array, contentType: string): Form {
  if (contentType.includes('json') && isJson(bytes)) return 'json'
  return isText(bytes) ? 'text' : 'hex'
}

function isText(bytes: Uint8Array): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    return !/[\u0000-\u0008\u000e-\u001f]/.test(text)
  } catch {
    return false
  }
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}
