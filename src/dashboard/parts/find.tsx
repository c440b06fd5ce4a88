import { useState } from 'preact/hooks'
import { asRefusal, get, part, type Refusal } from '../api.js'
import { go, link } from '../route.js'

/** One place to go to anything of which one has the id. */
export function Find() {
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const text = String(new FormData(form).get('find') ?? '').trim()
    if (text === '') return
    setRefusal(undefined)
    try {
      const to = await placeOf(text)
      go(to ?? link(['messages'], { conversation: text }))
      form.reset()
    } catch (error) {
      setRefusal(asRefusal(error))
    }
  }
  return (
    <search class="find">
      <form onSubmit={submit}>
        <label for="find" class="hidden">
          Find an id, key, host, session or conversation
        </label>
        <input
          id="find"
          name="find"
          type="search"
          placeholder="Find id, key, host, session …  ( / )"
          autoComplete="off"
        />
        {refusal !== undefined && (
          <span role="alert" class="found">
            {refusal.message}
          </span>
        )}
      </form>
    </search>
  )
}

/** Where what is named by the text is shown; undefined for something that is at most a conversation. */
async function placeOf(text: string): Promise<string | undefined> {
  const [, message, delivery] = /^(\d{12,14}-\d+)((?:\.\d+)?)(?:\/\d+)?$/.exec(text) ?? []
  if (message !== undefined) {
    return delivery ? link(['deliveries', message + delivery]) : link(['messages', message])
  }
  const scoped = /^(host|session|conversation):(.+)$/.exec(text)
  if (scoped?.[1] === 'host') return link(['hosts', scoped[2] ?? ''])
  if (scoped?.[1] === 'session') return link(['sessions', scoped[2] ?? ''])
  if (scoped?.[1] === 'conversation') return link(['messages'], { conversation: scoped[2] })
  const { messages } = await get<{ messages: { id: string }[] }>('v1/messages', { key: text })
  if (messages[0] !== undefined) return link(['messages', messages[0].id])
  if (/^[a-z0-9._-]{1,63}$/.test(text) && (await exists(`v1/hosts/${part(text)}`)))
    return link(['hosts', text])
  if (await exists(`v1/sessions/${part(text)}`)) return link(['sessions', text])
  if (await exists(`v1/effects/${part(text)}`)) return link(['effects', text])
  return undefined
}

async function exists(path: string): Promise<boolean> {
  try {
    await get(path)
    return true
  } catch (error) {
    if (asRefusal(error).status === 404) return false
    throw error
  }
}
