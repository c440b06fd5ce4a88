import { effect, signal } from '@preact/signals'
import type { Overview } from '../contract/overview.js'
import type { Me } from '../contract/wire-me.js'
import { asRefusal, get, isUnknownHere, type Refusal, send } from './api.js'
import { changes, clockAhead } from './live.js'

export const me = signal<Me | undefined>(undefined)
/** Several hubs are served here: their names. */
export const hubs = signal<readonly string[] | undefined>(undefined)
/** Why the page could not begin. */
export const trouble = signal<Refusal | undefined>(undefined)
export const overview = signal<Overview | undefined>(undefined)
export const overviewRefusal = signal<Refusal | undefined>(undefined)

export function mayAct(): boolean {
  return me.value?.role === 'operator'
}

/** Asks who we are; where no hub is here, which hubs are. */
export async function begin(): Promise<void> {
  try {
    trouble.value = undefined
    // Asked for at once, for most who open the page may see it; who may not is told by what follows.
    void get<Overview>('v1/overview').then(takeOverview, () => undefined)
    me.value = await get<Me>('v1/me')
    isUnknownHere.value = false
  } catch (error) {
    const refusal = asRefusal(error)
    if (refusal.status === 401) return
    if (refusal.code === 'ROUTE_NOT_FOUND') hubs.value = (await get<{ hubs: string[] }>('hubs')).hubs
    else trouble.value = refusal
  }
}

/** @throws Refusal */
export async function login(token: string): Promise<void> {
  me.value = await send<Me>('POST', 'v1/login', { token })
  isUnknownHere.value = false
}

export async function logout(): Promise<void> {
  await send('POST', 'v1/logout')
  me.value = undefined
  isUnknownHere.value = true
}

function takeOverview(value: Overview): void {
  clockAhead.value = value.at - Date.now()
  overview.value = value
  overviewRefusal.value = undefined
}

const leastMs = 2000
const everyMs = 5000

/** Keeps the overview current for as long as the page is seen: the counts beside the screens' names are from it. */
export function followOverview(): void {
  let isReading = false
  let readAt = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const read = async () => {
    clearTimeout(timer)
    if (!document.hidden && me.peek() !== undefined && !isReading) {
      isReading = true
      try {
        takeOverview(await get<Overview>('v1/overview'))
      } catch (error) {
        overviewRefusal.value = asRefusal(error)
      }
      isReading = false
      readAt = Date.now()
    }
    timer = setTimeout(read, everyMs)
  }
  effect(() => {
    changes.value
    if (me.value === undefined) return
    clearTimeout(timer)
    timer = setTimeout(read, Math.max(0, readAt + leastMs - Date.now()))
  })
}
