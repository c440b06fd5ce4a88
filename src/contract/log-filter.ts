import { HoldfastError } from './errors.js'
import { escapePart, hostId } from './ids.js'

/** One change of the record, as the log has it. */
export interface LogEntry {
  readonly id: string
  readonly verb: string
  readonly actor: string
  /** What moved from which state to which. */
  readonly changes: readonly { readonly ids: readonly string[]; readonly from: string; readonly to: string }[]
  /** Hosts where something became runnable; `*` where they were too many to name. */
  readonly hosts: readonly string[] | '*'
  /** Every other field, such as `reason` or `scope`. */
  readonly details: Readonly<Record<string, string>>
}

/** Which entries of the log are wanted: those that match every member. */
export interface LogFilter {
  /** Any of these verbs. */
  readonly verbs?: readonly string[] | undefined
  readonly actor?: string | undefined
  /** Something became runnable there, its node is the actor, or it is named in the details. */
  readonly host?: string | undefined
  /** A message, delivery, attempt, session, effect or fence: an id of it, or what begins with it, is in the entry. */
  readonly about?: string | undefined
}

const verbPattern = /^[a-z_]{1,64}$/
const verbsAtMost = 64

/** The filter itself. @throws INVALID_ARGUMENT for what names nothing that could be in the log */
export function checkedLogFilter(filter: LogFilter): LogFilter {
  const { verbs, host } = filter
  if (verbs !== undefined) {
    const isGood = verbs.length > 0 && verbs.length <= verbsAtMost && verbs.every((each) => isVerb(each))
    if (!isGood) throw new HoldfastError('INVALID_ARGUMENT', `verbs ${JSON.stringify(verbs)} name none`)
  }
  if (host !== undefined) hostId(host)
  for (const name of ['actor', 'about'] as const) {
    const text = filter[name]
    if (text === undefined || isText(text)) continue
    throw new HoldfastError('INVALID_ARGUMENT', `${name} must be 1 to 1024 bytes of text`)
  }
  return filter
}

function isVerb(text: string): boolean {
  return verbPattern.test(text)
}

function isText(text: string): boolean {
  const bytes = Buffer.byteLength(text)
  return bytes >= 1 && bytes <= 1024 && text.isWellFormed()
}

/** Whether an entry is one of those that the filter wants. */
export function isWantedEntry(entry: LogEntry, { verbs, actor, host, about }: LogFilter): boolean {
  if (verbs !== undefined && !verbs.includes(entry.verb)) return false
  if (actor !== undefined && entry.actor !== actor) return false
  if (host !== undefined && !isOfHost(entry, host)) return false
  return about === undefined || isAbout(entry, about)
}

function isOfHost(entry: LogEntry, host: string): boolean {
  const { hosts, actor, details } = entry
  if (hosts === '*' || hosts.includes(host) || actor.startsWith(`${host}/`)) return true
  return details['host'] === host || fenceOf(entry)?.endsWith(`:host:${host}`) === true
}

function isAbout(entry: LogEntry, about: string): boolean {
  const { changes, details } = entry
  const escaped = escapePart(about)
  const names = [about, `session:${escaped}`, `effect:${escaped}`]
  const isPart = (id: string) =>
    names.includes(id) ||
    id.startsWith(`${about}.`) ||
    id.startsWith(`${about}/`) ||
    about.startsWith(`${id}/`)
  if (changes.some(({ ids }) => ids.some(isPart))) return true
  if (Object.values(details).some((value) => value === about || value === escaped)) return true
  const fence = fenceOf(entry)
  if (fence === about || fence?.slice(fence.indexOf(':') + 1) === about) return true
  const [message = ''] = about.split('.')
  return acceptedIn(entry).includes(message) || details['messages']?.split(' ').includes(message) === true
}

/** `<kind>:<scope>` of the fence that was set or lifted. */
function fenceOf({ verb, details: { scope, fence } }: LogEntry): string | undefined {
  return scope === undefined ? fence : `${verb}:${scope}`
}

/** Message ids that one entry of the log stands for, as lua/lib/accept.lua has it. */
const idsAnEntry = 100

/** The messages whose acceptance an entry records, in their order; none where it records something else. */
export function acceptedIn({ id, verb, details: { key, messages } }: LogEntry): string[] {
  if (verb !== 'accept' || (key === undefined && messages === undefined)) return []
  const [ms = '', sequence = ''] = id.split('-')
  const count = messages === undefined ? 1 : Math.min(idsAnEntry, Number(messages) || 0)
  const first = Number(sequence) * idsAnEntry
  return Array.from({ length: count }, (_, at) => `${ms}-${String(first + at).padStart(8, '0')}`)
}

/** The entry that records the acceptance of a message, by the message's id. */
export function entryOfMessage(message: string): string {
  const [ms = '', number = ''] = message.split('-')
  return `${ms}-${Math.floor(Number(number) / idsAnEntry)}`
}

/** The least id that a message of an entry can have. */
export function leastMessageOf(entry: string): string {
  const [ms = '', sequence = ''] = entry.split('-')
  return `${ms}-${String(Number(sequence) * idsAnEntry).padStart(8, '0')}`
}
