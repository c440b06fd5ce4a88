import type { FenceView } from '../contract/host-views.js'
import type { NamedHub } from './completion-hub.js'

/** Something that may stand where the cursor is, and what it is. */
export interface Candidate {
  readonly value: string
  readonly note?: string | undefined
}

/** Ids are many: this many are offered. */
const idsAtMost = 50
const namesAtMost = 200
/** Entries of the log that verbs are taken from. */
const verbsOf = 500

type Names = (hub: NamedHub, given: readonly string[]) => Promise<readonly Candidate[]>

const page = { limit: idsAtMost }

const live: Names = async (hub) =>
  (await hub.deliveries(page)).deliveries.map(({ id, state, host }) => ({
    value: id,
    note: `${state}, ${host}`,
  }))
const held: Names = async (hub) =>
  (await hub.heldPage(page)).entries.map(({ id, host }) => ({ value: id, note: `held, ${host}` }))
const messages: Names = async (hub) => {
  const { deliveries } = await hub.deliveries(page)
  return [...new Set(deliveries.map(({ message }) => message))].map((value) => ({
    value,
    note: 'unfinished',
  }))
}
const unknown: Names = async (hub) =>
  (await hub.unknownPage(page)).entries.map(({ id, host }) => ({ value: id, note: host }))
const attempts: Names = async (...asked) => (await unknown(...asked)).filter(({ value }) => isAttempt(value))
const inDoubt: Names = async (hub) =>
  (await hub.deliveries({ ...page, state: 'unknown' })).deliveries.map(({ id, host }) => ({
    value: id,
    note: host,
  }))
const effects: Names = async (hub) =>
  (await hub.effectPage(page)).entries.map(({ id, status }) => ({ value: id, note: status }))
const executing: Names = async (hub) =>
  (await hub.effectPage({ ...page, executing: true })).entries.map(({ id, executor }) => ({
    value: id,
    note: `executing, ${executor}`,
  }))
const hosts: Names = async (hub) => (await hub.hostNames()).slice(0, namesAtMost).map((value) => ({ value }))
const nodes: Names = async (hub) => {
  const { entries } = await hub.hostPage(page)
  return entries.flatMap(({ host, nodes: those }) =>
    those.map(({ node, state }) => ({ value: node, note: `${state}, ${host}` })),
  )
}
const sessions: Names = async (hub) =>
  (await hub.sessionPage({ limit: namesAtMost })).entries.map(({ session, state, host }) => ({
    value: session,
    note: `${state}, ${host}`,
  }))
const principals: Names = async (hub) => {
  const all = await hub.principals()
  return all
    .filter(({ revokedAt }) => revokedAt === undefined)
    .map(({ name, role }) => ({ value: name, note: role }))
}
const settings: Names = async (hub) =>
  (await hub.configuration()).map(({ name, value, meaning }) => ({
    value: name,
    note: `${value}: ${meaning}`,
  }))
const settingValues: Names = async (hub, [name]) => {
  const found = (await hub.configuration()).find((each) => each.name === name)
  return [
    { value: String(found?.value ?? ''), note: 'as it is' },
    { value: String(found?.default ?? ''), note: 'the default' },
  ]
}
const recipients: Names = async (...asked) => [
  ...(await hosts(...asked)).map(({ value }) => ({ value: `host:${value}` })),
  ...(await sessions(...asked)).map(({ value, note }) => ({ value: `session:${value}`, note })),
]
const scopes: Names = async (...asked) => [
  { value: 'hub', note: 'everything' },
  ...(await recipients(...asked)),
  ...(await conversations(...asked)).map(({ value }) => ({ value: `conversation:${value}` })),
]
const conversations: Names = async (hub) => {
  const { deliveries } = await hub.deliveries(page)
  return [...new Set(deliveries.map(({ conversation }) => conversation))].map((value) => ({ value }))
}
const standingKinds: Names = async (hub) => {
  const fences = await hub.fences()
  return [...new Set(fences.map((each) => partsOf(each)[0]))].map((value) => ({ value, note: 'stands' }))
}
const standing: Names = async (hub, [kind]) =>
  (await hub.fences())
    .map(partsOf)
    .filter(([own]) => own === kind)
    .map(([, value]) => ({ value, note: 'stands' }))
const hubs: Names = async (hub) => (await hub.hubNames()).map((value) => ({ value }))
/** As far as they occurred lately. */
const verbs: Names = async (hub) => {
  const { entries } = await hub.logPage({ limit: verbsOf })
  return [...new Set(entries.map(({ verb }) => verb))].sort().map((value) => ({ value }))
}
const things: Names = async (...asked) => [...(await live(...asked)), ...(await sessions(...asked))]

/** Names of the record that may be an argument, by command and argument. */
export const argumentNames: Readonly<Record<string, Names>> = {
  'message show id': messages,
  'message resend id': messages,
  'delivery show id': live,
  'delivery why id': live,
  'delivery hold id': live,
  'delivery cancel id': live,
  'delivery release id': held,
  'delivery reject id': held,
  'delivery resolve id': inDoubt,
  'attempt resolve id': attempts,
  'effect show id': effects,
  'effect resolve id': executing,
  'fence pause scope': scopes,
  'fence hold scope': scopes,
  'fence block scope': scopes,
  'fence lift kind': standingKinds,
  'fence lift scope': standing,
  'host drain host': hosts,
  'host retire host': hosts,
  'hub-of conversation': conversations,
  'session show id': sessions,
  'session open id': sessions,
  'session close id': sessions,
  'session rehome id': sessions,
  'principal revoke name': principals,
  'config get name': settings,
  'config set name': settings,
  'config set value': settingValues,
}

/** Names of the record that may be the value of a flag, by its name in camelCase; with a command before it, there alone. */
export const flagNames: Readonly<Record<string, Names>> = {
  host: hosts,
  node: nodes,
  session: sessions,
  conversation: conversations,
  to: recipients,
  hub: hubs,
  hubs,
  actor: principals,
  sender: principals,
  about: things,
  verb: verbs,
  'send parent': messages,
  'session open parent': sessions,
}

function isAttempt(id: string): boolean {
  return /\.\d+\/\d+$/.test(id)
}

/** Kind and scope of a fence. */
function partsOf({ fence }: FenceView): [string, string] {
  const at = fence.indexOf(':')
  return [fence.slice(0, at), fence.slice(at + 1)]
}
