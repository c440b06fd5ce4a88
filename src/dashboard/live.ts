import { effect, signal } from '@preact/signals'
import { address, answeredAt } from './api.js'

// What tells the screens to read again: one stream of the hub's log, summed up once a second.

/** `paused`: the page is hidden. `down`: the stream broke, and is opened again by and by. */
export type LiveState = 'connecting' | 'live' | 'paused' | 'down'

export const liveState = signal<LiveState>('connecting')
/** Since when it is as it is, by the clock of this browser. */
export const liveSince = signal(Date.now())
/** Grows with each change that the hub tells of. */
export const changes = signal(0)
/** The time, once a second while the page is seen. */
export const now = signal(Date.now())
/** The clock of Redis, less that of this browser. */
export const clockAhead = signal(0)
/** Something is being decided: rows must not move under the pointer. */
export const frozen = signal(0)

const digestMs = 1000
const retry = { leastMs: 500, mostMs: 5000 }

let source: EventSource | undefined
let position = ''
let failures = 0
let timer: ReturnType<typeof setTimeout> | undefined
let isWanted: () => boolean = () => false

/** The time by the clock of Redis. */
export function recordNow(): number {
  return now.value + clockAhead.value
}

function become(state: LiveState): void {
  if (liveState.peek() === state) return
  liveState.value = state
  liveSince.value = Date.now()
}

function close(): void {
  clearTimeout(timer)
  source?.close()
  source = undefined
}

function open(): void {
  close()
  if (document.hidden || !isWanted()) return
  const opened = new EventSource(address('v1/events', { digestMs, lastEventId: position }))
  source = opened
  opened.addEventListener('open', () => {
    failures = 0
    answeredAt.value = Date.now()
    become('live')
    // What happened until now is in no event where the stream begins anew.
    changes.value += 1
  })
  const onEvent = (event: MessageEvent) => {
    position = event.lastEventId
    answeredAt.value = Date.now()
    changes.value += 1
  }
  opened.addEventListener('changes', onEvent)
  opened.addEventListener('gap', onEvent)
  opened.addEventListener('error', () => {
    if (source !== opened) return
    close()
    become('down')
    failures += 1
    timer = setTimeout(open, Math.min(retry.mostMs, retry.leastMs * 2 ** Math.min(failures, 6)))
  })
}

/** Opens the stream while it is wanted, a signal's word, and the page is seen. Call once. */
export function startLive(wanted: () => boolean): void {
  isWanted = wanted
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) {
      close()
      become('paused')
      return
    }
    become('connecting')
    now.value = Date.now()
    open()
  })
  addEventListener('online', () => liveState.peek() === 'down' && open())
  setInterval(() => {
    if (!document.hidden) now.value = Date.now()
  }, 1000)
  effect(() => {
    if (wanted()) open()
    else close()
  })
}

/** Reads everything anew, as after an act. */
export function refreshAll(): void {
  changes.value += 1
}
