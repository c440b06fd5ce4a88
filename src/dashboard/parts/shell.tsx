import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { answeredAt } from '../api.js'
import { duration, number } from '../format.js'
import { logout, me, overview } from '../hub.js'
import { liveSince, liveState, now } from '../live.js'
import { go, link, place } from '../route.js'
import { ActDialog, Done, useModal } from './act.js'
import { BulkDialog } from './bulk.js'
import { Find } from './find.js'
import { ThemeSwitch } from './theme.js'

/** A screen's entry in the navigation; the key goes there after `g`. */
interface Entry {
  readonly path: string
  readonly name: string
  readonly key: string
  readonly count?: () => number | undefined
  readonly isUrgent?: boolean
}

const entries: readonly Entry[] = [
  { path: '', name: 'Overview', key: 'o' },
  { path: 'deliveries', name: 'Deliveries', key: 'd' },
  { path: 'messages', name: 'Messages', key: 'm' },
  { path: 'held', name: 'Held', key: 'h', count: () => overview.value?.lists.held?.count, isUrgent: true },
  {
    path: 'unknown',
    name: 'Unknown',
    key: 'u',
    count: () => overview.value?.lists.unknown?.count,
    isUrgent: true,
  },
  { path: 'fences', name: 'Fences', key: 'f', count: () => overview.value?.fences },
  { path: 'hosts', name: 'Hosts', key: 'n' },
  { path: 'sessions', name: 'Sessions', key: 's' },
  { path: 'effects', name: 'Effects', key: 'e' },
  { path: 'sweeps', name: 'Sweeps', key: 'w' },
  { path: 'audit', name: 'Audit', key: 'a' },
  { path: 'log', name: 'Log', key: 'l' },
  { path: 'settings', name: 'Settings', key: 't' },
]

export function Shell({ children }: { children: ComponentChildren }) {
  const [isHelp, setHelp] = useState(false)
  useKeys(() => setHelp(true))
  const here = place.value.parts[0] ?? ''
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={skip}>
        To the content
      </button>
      <header class="top">
        <a class="brand" href={link([])}>
          <span aria-hidden="true">⊢</span> Holdfast
        </a>
        <span class="hub">
          hub <strong>{me.value?.hub}</strong>
        </span>
        <Find />
        <LiveBadge />
        <ThemeSwitch />
        <Who />
      </header>
      <nav class="screens" aria-label="Screens">
        <ul>
          {entries.map(({ path, name, count, isUrgent = false }) => {
            const figure = count?.() ?? 0
            return (
              <li key={path}>
                <a href={link(path === '' ? [] : [path])} aria-current={here === path ? 'page' : undefined}>
                  {name}
                  {figure > 0 && <span class={isUrgent ? 'count urgent' : 'count'}>{number(figure)}</span>}
                </a>
              </li>
            )
          })}
        </ul>
      </nav>
      <main id="content" tabIndex={-1}>
        <StaleBanner />
        {children}
      </main>
      <ActDialog />
      <BulkDialog />
      <Done />
      {isHelp && <Help onClose={() => setHelp(false)} />}
    </div>
  )
}

/** The hash is the route here: the skip link moves the focus itself. */
function skip(): void {
  document.getElementById('content')?.focus()
}

const liveWords = { live: 'Live', connecting: 'Connecting', paused: 'Paused', down: 'Not connected' } as const
const liveSigns = { live: '●', connecting: '◌', paused: '‖', down: '✕' } as const

function LiveBadge() {
  const state = liveState.value
  return (
    <span class={`live ${state}`} title="Whether changes of the hub arrive here as they happen">
      <span aria-hidden="true">{liveSigns[state]}</span> {liveWords[state]}
    </span>
  )
}

const staleAfterMs = 3000
/** Without any answer for so long, what is shown is old, whatever the stream says. */
const silentAfterMs = 30_000

/** What is shown may be old: since when, and that it is seen to. */
function StaleBanner() {
  const state = liveState.value
  const silentMs = now.value - answeredAt.value
  const isDown = state === 'down' && now.value - liveSince.value > staleAfterMs
  const isStale = isDown || (state !== 'paused' && answeredAt.value > 0 && silentMs > silentAfterMs)
  return (
    <div role="status">
      {isStale && (
        <p class="note warn stale">
          <strong>! What is shown here is old.</strong> The hub last answered{' '}
          {duration(Math.max(0, silentMs))} ago. Trying again; nothing needs to be reloaded.
        </p>
      )}
    </div>
  )
}

/** Below `/hubs/<name>/` one of several hubs is shown. */
const isOfSet = /\/hubs\/[^/]+\/$/.test(location.pathname)

function Who() {
  const { name = '', role = '', anonymous = false } = me.value ?? {}
  return (
    <span class="who">
      {anonymous ? 'no principal yet: everyone here is the operator' : `${name}, ${role}`}
      {!anonymous && (
        <button type="button" class="quiet" onClick={() => void logout()}>
          Log out
        </button>
      )}
      {isOfSet && <a href="../../">All hubs</a>}
    </span>
  )
}

const keysKey = 'holdfast.keys'

function keysAreOn(): boolean {
  try {
    return localStorage.getItem(keysKey) !== 'off'
  } catch {
    return true
  }
}

/** `/` finds, `g` and a letter goes, `?` helps; not while something is typed or decided. */
function useKeys(help: () => void): void {
  useEffect(() => {
    let isGoing = false
    const onKey = (event: KeyboardEvent) => {
      const { target, key, ctrlKey, metaKey, altKey } = event
      const isTyping = target instanceof Element && target.closest('input, select, textarea, dialog') !== null
      if (isTyping || ctrlKey || metaKey || altKey || !keysAreOn()) return
      if (isGoing) {
        isGoing = false
        const found = entries.find((entry) => entry.key === key)
        if (found !== undefined) go(link(found.path === '' ? [] : [found.path]))
        return
      }
      if (key === 'g') isGoing = true
      else if (key === '?') help()
      else if (key === '/') {
        event.preventDefault()
        document.getElementById('find')?.focus()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}

function Help({ onClose }: { onClose: () => void }) {
  const dialog = useModal(onClose)
  return (
    <dialog ref={dialog} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl class="keys">
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>find something by its id</dd>
        </div>
        {entries.map(({ key, name }) => (
          <div key={key}>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
      </dl>
      <label>
        <input
          type="checkbox"
          defaultChecked={keysAreOn()}
          onChange={(event) => {
            try {
              localStorage.setItem(keysKey, event.currentTarget.checked ? 'on' : 'off')
            } catch {
              // Without storage they stay on.
            }
          }}
        />{' '}
        Keys do this in this browser
      </label>
      <footer>
        <button type="button" class="main" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </footer>
    </dialog>
  )
}
