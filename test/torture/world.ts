import { createHash } from 'node:crypto'
import { linesOf } from '../../src/testing/checker/read.js'
import type * as checker from '../../src/testing/checker/words.js'

/** As a reader has it, but open to changes. */
type Bendable<Read> = { -readonly [Member in keyof Read]: Bendable<Read[Member]> }
export type Final = Bendable<checker.Final>
export type FinalDelivery = Bendable<checker.FinalDelivery>
export type FinalMessage = Bendable<checker.FinalMessage>
export type LogEntry = Bendable<checker.LogEntry>

/** A history that may be bent before it is judged: lines by file, and the record at the end. */
export interface Told {
  files: Map<string, Data[]>
  final: Final
}

// biome-ignore lint/suspicious/noExplicitAny: lines are whatever JSON a process wrote
export type Data = Record<string, any>

interface Row extends FinalDelivery {
  owner: string | undefined
  /** Released, and not begun since: it passes the holds that stood then. */
  released: Set<string> | undefined
}

export interface TestNode {
  readonly host: string
  readonly name: string
  incarnation: number
  pid: number
  state: 'up' | 'killed' | 'stopped'
  /** Runs that a kill cut, or that nobody has reported yet. */
  readonly open: Set<string>
}

const firstMs = 1_700_000_000_000

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** A record and its processes, as small as they can be: it makes histories of a system that keeps its promises. */
export function createWorld() {
  const files = new Map<string, Data[]>()
  const log: LogEntry[] = []
  const rows = new Map<string, Row>()
  const messages = new Map<string, FinalMessage>()
  const keys = new Map<string, FinalMessage>()
  const unknown = new Map<string, string>()
  const nodes = new Map<string, TestNode>()
  const fences = new Set<string>()
  let [tick, ops, pids, faults] = [0, 0, 100, 0]

  function write(role: string, name: string, pid: number, data: Data): Data {
    const file = `${role}-${name}-${pid}.jsonl`
    tick += 1
    const line = { t: String(tick * 1_000_000_000), role, name, pid, ...data }
    const lines = files.get(file)
    if (lines === undefined) files.set(file, [line])
    else lines.push(line)
    return line
  }
  const producer = (data: Data) => write('producer', 'p1', 1, { kind: 'accept', ...data })
  const operator = (data: Data) => write('operator', 'o1', 2, data)
  const conductor = (data: Data) => write('conductor', 'run', 3, data)

  function record(
    verb: string,
    actor: string,
    moves: [id: string, from: string, to: string][],
    more: Data = {},
  ) {
    tick += 1
    const id = `${firstMs + tick}-0`
    const told = moves.flatMap(([ids, from, to]): [string, string][] => [
      ['ids', ids],
      ['from', from],
      ['to', to],
    ])
    log.push({
      id,
      fields: [['verb', verb], ['actor', actor], ...told, ...(Object.entries(more) as [string, string][])],
    })
    return id
  }

  function row(id: string): Row {
    const found = rows.get(id)
    if (found === undefined) throw new Error(`no delivery ${id}`)
    return found
  }

  const lastOf = (id: string) => row(id).attempts.at(-1)
  const conversationOf = (id: string) => messages.get(row(id).message)?.conversation ?? ''
  const isOpen = (id: string) => lastOf(id)?.status === 'executing'
  const isFinished = (id: string) =>
    row(id).state === 'failed' || ['done', 'terminal'].includes(lastOf(id)?.status ?? '')

  /** Stores a message, as an accept does that was carried out. */
  function store(key: string, to: Data[], conversation: string): FinalMessage {
    const known = keys.get(key)
    if (known !== undefined) return known
    const entry = record('accept', 'torture', [], { key, recipients: String(to.length) })
    const id = `${entry.split('-')[0]}-00000000`
    const message = { id, key, conversation, sha256: digestOf(key), recipients: to.length }
    messages.set(id, message)
    keys.set(key, message)
    for (const [at, { host, session }] of to.entries()) {
      const delivery = `${id}.${at + 1}`
      const made = { id: delivery, message: id, host: host ?? 'h1', conversation, state: 'queued', epoch: 0 }
      rows.set(delivery, {
        ...made,
        ...(session === undefined ? {} : { session }),
        attempts: [],
        owner: undefined,
        released: undefined,
      })
    }
    return message
  }

  /** `done` and `not`: the answer was lost, after it happened or before. */
  function accept(
    key: string,
    how: 'ok' | 'done' | 'not' | 'fail' | 'changed',
    to: Data[],
    conversation = 'c1',
  ) {
    ops += 1
    const about = { op: `p1/${ops}`, key, ...(how === 'changed' ? { changed: true } : {}) }
    const digest = how === 'changed' ? digestOf(`${key}!`) : digestOf(key)
    producer({ ...about, type: 'invoke', conversation, to, digest })
    const replayed = keys.has(key)
    if (how === 'fail') return void producer({ ...about, type: 'fail', code: 'NO_ROUTE' })
    if (how === 'changed') return void producer({ ...about, type: 'fail', code: 'IDEMPOTENCY_MISMATCH' })
    if (how === 'not') return void producer({ ...about, type: 'info', code: 'DEADLINE_EXCEEDED' })
    const { id } = store(key, to, conversation)
    if (how === 'done') return void producer({ ...about, type: 'info', code: 'HUB_UNREACHABLE' })
    const deliveries = to.map((_, at) => ({ id: `${id}.${at + 1}`, host: row(`${id}.${at + 1}`).host }))
    producer({ ...about, type: 'ok', id, deliveries, replayed })
  }

  function join(name: string, host: string): TestNode {
    pids += 1
    const before = nodes.get(name)
    const node: TestNode = before ?? { host, name, incarnation: 0, pid: 0, state: 'up', open: new Set() }
    node.incarnation += 1
    node.pid = pids
    node.state = 'up'
    nodes.set(name, node)
    record('join', nameOf(node), [], { incarnation: String(node.incarnation) })
    write('node', name, node.pid, { kind: 'up', host })
    return node
  }
  const nameOf = ({ host, name }: TestNode) => `${host}/${name}`

  /** What a fence makes of a delivery that meets it. */
  function fenceOver(id: string): string | undefined {
    const { host, session, released } = row(id)
    const scopes = [
      'hub',
      `host:${host}`,
      `conversation:${conversationOf(id)}`,
      ...(session ? [`session:${session}`] : []),
    ]
    const over = ['block', 'hold', 'pause'].flatMap((kind) => scopes.map((scope) => `${kind}:${scope}`))
    return over.find((field) => fences.has(field) && !(field.startsWith('hold') && released?.has(field)))
  }

  function hold(verb: string, actor: string, id: string, reason: string) {
    const each = row(id)
    record(verb, actor, [[id, each.state, 'held']])
    Object.assign(each, {
      state: 'held',
      epoch: each.epoch + 1,
      owner: undefined,
      heldReason: reason,
      released: undefined,
    })
  }

  function stopBy(fence: string, verb: string, actor: string, id: string) {
    if (fence.startsWith('hold')) return hold(verb, actor, id, fence)
    record(verb, actor, [[id, row(id).state, 'failed']])
    Object.assign(row(id), { state: 'failed', reason: `blocked ${fence}` })
  }

  function claim(node: TestNode, id: string) {
    const each = row(id)
    const fence = fenceOver(id)
    if (node.state !== 'up' || each.host !== node.host || each.state !== 'queued') return
    if (fence?.startsWith('pause')) return void record('claim', nameOf(node), [[id, 'queued', 'parked']])
    if (fence !== undefined) return stopBy(fence, 'claim', nameOf(node), id)
    record('claim', nameOf(node), [[id, 'queued', 'claimed']])
    Object.assign(each, {
      state: 'claimed',
      epoch: each.epoch + 1,
      owner: `${nameOf(node)}#${node.incarnation}`,
    })
  }

  const owns = (node: TestNode, id: string) => row(id).owner === `${nameOf(node)}#${node.incarnation}`

  /** Handoff and begin in one call, as nodes do; the fences are looked at again. */
  function take(node: TestNode, id: string) {
    const each = row(id)
    if (node.state !== 'up' || !owns(node, id) || !['claimed', 'mirrored', 'delivered'].includes(each.state))
      return
    if (isOpen(id) || isFinished(id)) return
    const moves: [string, string, string][] = []
    if (each.state === 'claimed') moves.push([id, 'claimed', 'mirrored'])
    if (each.state !== 'delivered') moves.push([id, 'mirrored', 'delivered'])
    each.state = 'delivered'
    const fence = fenceOver(id)
    if (fence !== undefined) {
      if (moves.length > 0) record('take', nameOf(node), moves)
      if (!fence.startsWith('pause')) stopBy(fence, 'begin', nameOf(node), id)
      return
    }
    const number = each.attempts.length + 1
    record('take', nameOf(node), [...moves, [`${id}/${number}`, 'idle', 'executing']])
    each.attempts.push({ number, status: 'executing', node: nameOf(node) })
    each.released = undefined
    node.open.add(id)
  }

  function mark(node: TestNode, id: string, type: 'begin' | 'end', more: Data = {}) {
    const { epoch } = row(id)
    const number = lastOf(id)?.number ?? 0
    const about = { delivery: id, attempt: `${id}/${number}`, number, epoch, replay: false, node: node.name }
    const digest = messages.get(row(id).message)?.sha256
    write('marks', node.name, node.pid, { kind: 'mark', type, ...about, digest, ...more })
  }

  function settle(node: TestNode, id: string, status: string, verb = 'report', actor = nameOf(node)) {
    const last = lastOf(id)
    if (last === undefined || last.status !== 'executing') return
    last.status = status
    unknown.delete(`${id}/${last.number}`)
    node.open.delete(id)
    const own = verb === 'report' && owns(node, id)
    const settles: [string, string, string] = [`${id}/${last.number}`, 'executing', status]
    if (status !== 'not_sent' || own) return void record(verb, actor, [settles])
    record(verb, actor, [settles, [id, 'delivered', 'queued']])
    Object.assign(row(id), { state: 'queued', epoch: row(id).epoch + 1, owner: undefined })
  }

  function listUnknown(node: TestNode, id: string, verb: string) {
    const attempt = `${id}/${lastOf(id)?.number}`
    if (unknown.has(attempt)) return
    unknown.set(attempt, 'executor_died')
    record(verb, verb === 'report' ? nameOf(node) : 'sweep', [[attempt, 'executing', 'unknown']])
  }

  /** Begins, runs to its end and reports. */
  function run(
    node: TestNode,
    id: string,
    outcome: 'result' | 'terminal' | 'not_sent' | 'outcome_unknown' | 'late',
  ) {
    take(node, id)
    if (!node.open.has(id) || node.state !== 'up' || !isOpen(id) || !owns(node, id)) return
    mark(node, id, 'begin')
    if (outcome === 'late') listUnknown(node, id, 'report')
    const ended = outcome === 'late' ? { outcome: 'result', late: true } : { outcome }
    mark(node, id, 'end', ended)
    if (outcome === 'outcome_unknown') {
      node.open.delete(id)
      return listUnknown(node, id, 'report')
    }
    const status = { result: 'done', late: 'done', terminal: 'terminal', not_sent: 'not_sent' }[outcome]
    settle(node, id, status)
    const attempt = `${id}/${lastOf(id)?.number}`
    write('node', node.name, node.pid, {
      kind: 'report',
      attempt,
      outcome: outcome === 'late' ? 'result' : outcome,
    })
  }

  function fault<Result>(name: string, target: Data | undefined, make: () => Result): Result {
    faults += 1
    conductor({ kind: 'fault', id: faults, name, type: 'begin', ...(target === undefined ? {} : { target }) })
    const made = make()
    conductor({ kind: 'fault', id: faults, name, type: 'end' })
    return made
  }

  /** Killed between the begin and the start mark, in the middle of a run, or with nothing under way. */
  function kill(node: TestNode, id: string, where: 'idle' | 'begun' | 'running') {
    if (node.state !== 'up') return
    if (where !== 'idle') take(node, id)
    if (where === 'running' && node.open.has(id) && owns(node, id)) mark(node, id, 'begin')
    fault('kill', { role: 'node', name: node.name, pid: node.pid }, () => {
      node.state = 'killed'
    })
  }

  const hasBegun = (node: TestNode, id: string) =>
    [...files].some(
      ([file, lines]) =>
        file.startsWith(`marks-${node.name}-`) &&
        lines.some((line) => line['attempt'] === `${id}/${lastOf(id)?.number}` && line['type'] === 'begin'),
    )

  /** The next process: what was never started is not_sent, what may have run is unknown, the rest is resumed. */
  function restart(node: TestNode) {
    if (node.state !== 'killed') return
    join(node.name, node.host)
    for (const id of [...node.open].filter(isOpen)) {
      if (hasBegun(node, id)) listUnknown(node, id, 'report')
      else settle(node, id, 'not_sent')
    }
    node.open.clear()
    resume(node, nameOf(node))
  }

  /** What gone processes of `owner` owned and did not begin. */
  function resume(node: TestNode, owner: string) {
    if (node.state !== 'up') return
    for (const each of rows.values()) {
      const { id, state } = each
      const gone = each.owner?.startsWith(`${owner}#`) && !owns(node, id)
      if (!gone || each.host !== node.host || isOpen(id) || isFinished(id)) continue
      if (state !== 'claimed' && state !== 'mirrored' && state !== 'delivered') continue
      record('claim', nameOf(node), [[id, state, state]])
      Object.assign(each, { epoch: each.epoch + 1, owner: `${nameOf(node)}#${node.incarnation}` })
    }
  }

  /** Somebody else of the host takes over what a killed one left. */
  function takeOver(node: TestNode) {
    const gone = [...nodes.values()].filter((each) => each.host === node.host && each.state === 'killed')
    for (const each of gone) resume(node, nameOf(each))
  }

  /** The record lost history, or cannot show that it did not; `node` had not presented what it saw. */
  function loseHistory(why: string) {
    record('history_lost', 'h1', [], { generation: '2', why })
  }

  function setAside(id: string, node?: string) {
    record('set_aside', 'h1', [[id, row(id).state, 'unknown']], node === undefined ? {} : { for: node })
    Object.assign(row(id), { state: 'unknown', epoch: 2_000_000, reason: 'history_lost' })
    unknown.set(id, 'history_lost')
  }

  function setFence(kind: string, scope: string, how: 'ok' | 'done' | 'not' = 'ok') {
    ops += 1
    const about = { kind: 'fence', act: 'set', op: `o1/${ops}`, fence: kind, scope }
    operator({ ...about, type: 'invoke' })
    if (how === 'not') return void operator({ ...about, type: 'info' })
    const logId = record(kind, 'operator', [], { scope, reason: `${kind} of the run` })
    fences.add(`${kind}:${scope}`)
    // One that is set anew is passed by nobody who was released before.
    for (const each of rows.values()) each.released?.delete(`${kind}:${scope}`)
    operator(how === 'ok' ? { ...about, type: 'ok', logId } : { ...about, type: 'info' })
  }

  function lift(field: string) {
    const [fence = '', ...scope] = field.split(':')
    ops += 1
    const about = { kind: 'fence', act: 'lift', op: `o1/${ops}`, fence, scope: scope.join(':') }
    operator({ ...about, type: 'invoke' })
    if (!fences.delete(field)) return void operator({ ...about, type: 'fail', code: 'FENCE_NOT_FOUND' })
    const back = [...rows.values()].filter((each) => each.state === 'held' && each.heldReason === field)
    const logId = record(
      'lift',
      'operator',
      back.map(({ id }) => [id, 'held', 'queued']),
      { fence: field },
    )
    for (const each of back) Object.assign(each, { state: 'queued', epoch: each.epoch + 1 })
    operator({ ...about, type: 'ok', logId })
  }

  function release(id: string) {
    if (row(id).state !== 'held') return
    ops += 1
    const about = { kind: 'act', act: 'release', op: `o1/${ops}`, id }
    operator({ ...about, type: 'invoke' })
    const logId = record('release', 'operator', [[id, 'held', 'queued']], { reason: 'released' })
    const released = new Set([...fences].filter((field) => field.startsWith('hold')))
    Object.assign(row(id), { state: 'queued', epoch: row(id).epoch + 1, released })
    operator({ ...about, type: 'ok', logId })
  }

  /** Faults are over: everybody is up, nothing stands in the way, and all that can run does. */
  function heal() {
    conductor({ kind: 'phase', phase: 'heal' })
    for (const field of [...fences]) lift(field)
    for (const node of nodes.values()) restart(node)
    for (const id of rows.keys()) release(id)
    for (let round = 0; round < 3; round += 1) {
      for (const { id, host } of rows.values()) {
        const node = [...nodes.values()].find((each) => each.host === host) ?? join(`n-${host}`, host)
        claim(node, id)
        const owner = [...nodes.values()].find((each) => owns(each, id)) ?? node
        run(owner, id, 'result')
      }
    }
  }

  function told(): Told {
    conductor({ kind: 'phase', phase: 'final' })
    const deliveries = [...rows.values()].map(({ owner: _, released: __, ...each }) => each)
    const byState: Record<string, number> = {}
    for (const { state } of deliveries) byState[state] = (byState[state] ?? 0) + 1
    const conservation = { recipients: deliveries.length, byState, owed: 0, pruned: 0 }
    const final: Final = {
      audit: {
        conservation,
        deliveries: deliveries.length,
        messages: messages.size,
        disagreements: [],
        more: false,
      },
      deliveries,
      messages: [...messages.values()],
      unknown: [...unknown].map(([id, reason]) => ({ id, reason })),
      held: deliveries.filter(({ state }) => state === 'held').map(({ id }) => ({ id, reason: 'hold' })),
      log,
    }
    return { files, final }
  }

  conductor({ kind: 'phase', phase: 'load', leastPerSecond: 0.0001 })
  return {
    accept,
    join,
    claim,
    take,
    run,
    mark,
    settle,
    kill,
    restart,
    resume,
    takeOver,
    setFence,
    lift,
    release,
    hold,
    fault,
    listUnknown,
    loseHistory,
    setAside,
    record,
    note: (node: TestNode, data: Data) => write('node', node.name, node.pid, data),
    heal,
    told,
    row,
    nodes,
    fences,
    ids: () => [...rows.keys()],
  }
}

export type World = ReturnType<typeof createWorld>

/** The files as they were read. */
export function linesIn({ files }: Told): checker.Line[] {
  return [...files].flatMap(([file, lines]) => linesOf(file, textOf(lines)))
}

export function textOf(lines: readonly Data[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('')
}
