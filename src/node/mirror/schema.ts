import { HoldfastError } from '../../contract/errors.js'
import { checked, type Store } from './store.js'

/** Raised with every change of the tables below. */
const schemaVersion = 2

const tables = [
  'create table if not exists meta (key text primary key, value text) without rowid',
  `create table if not exists copies (
    delivery text primary key, epoch integer not null, incarnation integer not null, session text,
    message text not null, payload blob not null, tries integer not null default 0,
    not_before_ms integer not null default 0, stored_at_ms integer not null)`,
  `create table if not exists grants (
    grant_id text primary key, delivery text not null, epoch integer not null, incarnation integer not null,
    minted_at_ms integer not null, attempt integer, started_at_ms integer, ended_at_ms integer, unknown text)`,
  'drop index if exists grants_by_delivery',
  'create unique index if not exists grant_of_delivery on grants (delivery)',
  `create table if not exists children (
    grant_id text not null, pid integer not null, process_group integer not null,
    start_time text not null, boot_id text not null, namespace text not null default '')`,
  'create index if not exists children_by_grant on children (grant_id)',
  `create table if not exists reports (
    key text primary key, grant_id text not null, delivery text not null, attempt integer,
    outcome text not null, final integer not null, created_at_ms integer not null)`,
]

/** Whose mirror a file is. */
export interface MirrorOwner {
  readonly hub: string
  readonly host: string
  readonly node: string
}

/**
 * Makes the tables where they are missing, brings an earlier layout up to date, refuses a later one or another node's file, and raises the
 * incarnation, all in one transaction.
 * @returns the incarnation of this start
 * @throws HoldfastError MIRROR_UNUSABLE
 */
export function prepareMirror(store: Store, file: string, owner: MirrorOwner): number {
  return store.transaction(() => {
    for (const table of tables) store.change(table, [])
    adoptLayout(store, file)
    refuseOtherOwner(store, file, owner)
    const incarnation = Number(readMeta(store, 'incarnation') ?? '0') + 1
    writeMeta(store, 'incarnation', String(incarnation))
    return incarnation
  })
}

/** A word the mirror keeps about itself. */
export function readMeta(store: Store, key: string): string | undefined {
  return store.first<{ value: string }>('select value from meta where key = ?', [key])?.value
}

/** Sets a word the mirror keeps about itself; inside a transaction. */
export function writeMeta(store: Store, key: string, value: string): void {
  store.change(
    'insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value',
    [key, value],
  )
}

/** Brings an earlier layout up to this one; refuses any other. */
function adoptLayout(store: Store, file: string): void {
  const found = readMeta(store, 'schema_version')
  if (found === undefined) writeMeta(store, 'schema_version', String(schemaVersion))
  else if (found === '1') {
    store.change("alter table children add column namespace text not null default ''", [])
    store.change('alter table grants add column unknown text', [])
    writeMeta(store, 'schema_version', String(schemaVersion))
  } else if (found !== String(schemaVersion)) {
    const detail = `the mirror ${file} has layout ${found}; this release knows ${schemaVersion}`
    throw new HoldfastError('MIRROR_UNUSABLE', detail, { next: 'use the release that wrote it' })
  }
}

function refuseOtherOwner(store: Store, file: string, owner: MirrorOwner): void {
  checked(owner.hub, owner.host, owner.node)
  const kept = { hub: readMeta(store, 'hub'), host: readMeta(store, 'host'), node: readMeta(store, 'node') }
  if (kept.node === undefined) {
    for (const key of ['hub', 'host', 'node'] as const) writeMeta(store, key, owner[key])
    return
  }
  if (kept.hub === owner.hub && kept.host === owner.host && kept.node === owner.node) return
  const detail = `the mirror ${file} belongs to ${named(kept)}, not to ${named(owner)}`
  throw new HoldfastError('MIRROR_UNUSABLE', detail, { next: 'give every node its own --mirror' })
}

function named(owner: { [word in keyof MirrorOwner]: string | undefined }): string {
  return `node ${owner.node} on host ${owner.host} of hub ${owner.hub}`
}
