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

/** Whether an entry is one of those that the filter wants. */
export function isWantedEntry(entry: LogEntry, { verbs, actor, host, about }: LogFilter): boolean {
  if (verbs !== undefined && !verbs.includes(entry.verb)) return false
  if (actor !== undefined && entry.actor !== actor) return false
  if (host !== undefined && !isOfHost(entry, host)) return false
  return about === undefined || isAbout(entry, about)
}

function isOfHost({ hosts, actor, details }: LogEntry, host: string): boolean {
  if (hosts === '*' || hosts.includes(host) || actor.startsWith(`${host}/`)) return true
  return details['host'] === host || details['scope'] === `host:${host}`
}

function isAbout({ changes, details }: LogEntry, about: string): boolean {
  const isPart = (id: string) =>
    id === about || id.startsWith(`${about}.`) || id.startsWith(`${about}/`) || about.startsWith(`${id}/`)
  return changes.some(({ ids }) => ids.some(isPart)) || Object.values(details).includes(about)
}
