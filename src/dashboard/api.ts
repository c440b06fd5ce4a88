import { signal } from '@preact/signals'
import type { Problem } from '../contract/wire.js'

// The hub over HTTP, below the path at which the page stands. Every call has a deadline.

const deadlineMs = 15_000

/** What the hub refused, or that it did not answer. */
export class Refusal extends Error {
  readonly code: string
  readonly next: string
  readonly status: number

  constructor(code: string, detail: string, next: string, status: number) {
    super(detail)
    this.code = code
    this.next = next
    this.status = status
  }
}

/** When the hub last answered, by the clock of this browser. */
export const answeredAt = signal(0)
/** The hub does not know this browser, or not any more: the page asks for a token. */
export const isUnknownHere = signal(false)
/** Who acts, where the hub asks for nobody's name yet; kept in this browser. */
export const actorName = signal(readActor())

const actorKey = 'holdfast.actor'

function readActor(): string {
  try {
    return localStorage.getItem(actorKey) ?? ''
  } catch {
    return ''
  }
}

export function rememberActor(name: string): void {
  actorName.value = name
  try {
    localStorage.setItem(actorKey, name)
  } catch {
    // Without storage the name lasts as long as the page.
  }
}

export type Params = Readonly<Record<string, string | number | boolean | undefined>>

/** The address of something of the hub, relative to the page. */
export function address(path: string, params: Params = {}): string {
  const url = new URL(path, document.baseURI)
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  }
  return url.href
}

/** A part of a path. */
export const part = encodeURIComponent

/** @throws Refusal */
export async function get<Answer>(path: string, params?: Params, signal?: AbortSignal): Promise<Answer> {
  const response = await ask(address(path, params), { method: 'GET' }, signal)
  return (await response.json()) as Answer
}

/** The bytes of an answer, with its headers. @throws Refusal */
export async function getBytes(path: string): Promise<{ bytes: Uint8Array; headers: Headers }> {
  const response = await ask(address(path), { method: 'GET' })
  return { bytes: new Uint8Array(await response.arrayBuffer()), headers: response.headers }
}

/** Changes something. @throws Refusal */
export async function send<Answer>(
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await ask(address(path), {
    method,
    headers: {
      'holdfast-page': '1',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(actorName.value === '' ? {} : { 'holdfast-actor': part(actorName.value) }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return (text === '' ? undefined : JSON.parse(text)) as Answer
}

async function ask(url: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
  const deadline = AbortSignal.timeout(deadlineMs)
  const ends = signal === undefined ? deadline : AbortSignal.any([signal, deadline])
  let response: Response
  try {
    response = await fetch(url, { ...init, signal: ends, credentials: 'same-origin', cache: 'no-store' })
  } catch (error) {
    if (signal?.aborted) throw error
    const detail = deadline.aborted ? `no answer within ${deadlineMs / 1000} s` : 'the hub cannot be reached'
    const next = init.method === 'GET' ? 'the page tries again' : 'look at what stands before doing it again'
    throw new Refusal('HUB_UNREACHABLE', detail, next, 0)
  }
  answeredAt.value = Date.now()
  if (response.ok) return response
  throw await refusalOf(response)
}

async function refusalOf(response: Response): Promise<Refusal> {
  const problem = (await response.json().catch(() => ({}))) as Partial<Problem>
  const { code = `HTTP_${response.status}`, detail = response.statusText, next = '' } = problem
  if (response.status === 401) isUnknownHere.value = true
  const faults = (problem.errors ?? []).map(({ pointer, detail: why }) => `${pointer}: ${why}`)
  return new Refusal(code, [detail, ...faults].join('; '), next, response.status)
}

export function asRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  return new Refusal('PAGE', error instanceof Error ? error.message : String(error), 'reload the page', 0)
}
