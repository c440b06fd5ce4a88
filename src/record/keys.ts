import { escapePart, hubName } from '../contract/ids.js'

export { escapePart } from '../contract/ids.js'

/**
 * Every key of a hub's record (contract section 9). All start with the tag, so they share one slot; parts
 * that are joined are escaped, so no name reaches another key. lua/lib/keys.lua builds the same names and a
 * test compares them.
 */
export interface Keys {
  readonly tag: string
  readonly identity: string
  readonly config: string
  readonly fences: string
  readonly obligations: string
  readonly held: string
  readonly unknown: string
  readonly hosts: string
  readonly nodes: string
  readonly counts: string
  readonly log: string
  readonly liveness: string
  /** Hosts whose unfinished deliveries are being set aside after a loss of history, with how far that has come. */
  readonly doubted: string
  /** Hosts that have work and no live node, by since when. */
  readonly stranded: string
  /** Deliveries with a deadline, by when it passes. */
  readonly deadlines: string
  /** Sessions by when they were first opened. */
  readonly sessions: string
  /** Effects by when they were first claimed; those that are executing, by since when. */
  readonly effects: string
  readonly executing: string
  /** Days on which something was settled: what retention looks at. */
  readonly settledDays: string
  readonly settledEffectDays: string
  /** Names of principals by when they were added; who is pinned to a certificate, by its fingerprint. */
  readonly principals: string
  readonly certificates: string
  readonly parkedHosts: string
  /** Hosts that were retired. */
  readonly retired: string
  /** Holds that keep something, and what one of them keeps. */
  readonly holding: string
  heldBy(fence: string): string
  /** Messages settled on a day, counted from 1970. */
  settled(day: number): string
  stream(host: string): string
  bell(host: string): string
  awaiting(host: string): string
  parked(host: string): string
  host(host: string): string
  lane(host: string, lane: string): string
  node(host: string, node: string): string
  session(session: string): string
  message(id: string): string
  payload(id: string): string
  recipients(id: string): string
  delivery(id: string): string
  idempotency(key: string): string
  principal(name: string): string
  effect(id: string): string
  settledEffects(day: number): string
  /** How the last run of a sweep went. */
  sweep(name: string): string
  children(session: string): string
  /** Unfinished deliveries of a session, in the order in which they were made. */
  sessionDeliveries(session: string): string
  /** Its deliveries with an open attempt. */
  sessionAttempts(session: string): string
}

/** The consumer group of every host stream. */
export const group = 'nodes'

/** Undoes {@link escapePart}. */
export function unescapePart(part: string): string {
  return part.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

/** A lane inside its host: `<conversation>/<session>`, the session empty where there is none. */
export function laneName(conversation: string, session?: string): string {
  return `${escapePart(conversation)}/${session === undefined ? '' : escapePart(session)}`
}

/** The keys of the hub with this name. Throws INVALID_ARGUMENT for a name that is none. */
export function keysOf(hub: string): Keys {
  const tag = `{${hubName(hub)}}`
  return {
    tag,
    identity: `${tag}:identity`,
    config: `${tag}:config`,
    fences: `${tag}:fences`,
    obligations: `${tag}:obligations`,
    held: `${tag}:held`,
    unknown: `${tag}:unknown`,
    hosts: `${tag}:hosts`,
    nodes: `${tag}:nodes`,
    counts: `${tag}:counts`,
    log: `${tag}:log`,
    liveness: `${tag}:liveness`,
    doubted: `${tag}:doubted`,
    stranded: `${tag}:stranded`,
    deadlines: `${tag}:deadlines`,
    sessions: `${tag}:sessions`,
    effects: `${tag}:effects`,
    executing: `${tag}:executing`,
    settledDays: `${tag}:settled_days`,
    settledEffectDays: `${tag}:settled_effect_days`,
    principals: `${tag}:principals`,
    certificates: `${tag}:certificates`,
    parkedHosts: `${tag}:parked`,
    retired: `${tag}:retired`,
    holding: `${tag}:holding`,
    heldBy: (fence) => `${tag}:held:${escapePart(fence)}`,
    settled: (day) => `${tag}:settled:${day}`,
    stream: (host) => `${tag}:stream:${host}`,
    bell: (host) => `${tag}:bell:${host}`,
    awaiting: (host) => `${tag}:awaiting:${host}`,
    parked: (host) => `${tag}:parked:${host}`,
    host: (host) => `${tag}:host:${host}`,
    lane: (host, lane) => `${tag}:lane:${host}/${lane}`,
    node: (host, node) => `${tag}:node:${host}/${escapePart(node)}`,
    session: (session) => `${tag}:session:${escapePart(session)}`,
    message: (id) => `${tag}:message:${id}`,
    payload: (id) => `${tag}:payload:${id}`,
    recipients: (id) => `${tag}:recipients:${id}`,
    delivery: (id) => `${tag}:delivery:${id}`,
    effect: (id) => `${tag}:effect:${escapePart(id)}`,
    settledEffects: (day) => `${tag}:settled_effects:${day}`,
    sweep: (name) => `${tag}:sweep:${name}`,
    children: (session) => `${tag}:children:${escapePart(session)}`,
    sessionDeliveries: (session) => `${tag}:session_deliveries:${escapePart(session)}`,
    sessionAttempts: (session) => `${tag}:session_attempts:${escapePart(session)}`,
    principal: (name) => `${tag}:principal:${escapePart(name)}`,
    idempotency: (key) => `${tag}:idempotency:${escapePart(key)}`,
  }
}
