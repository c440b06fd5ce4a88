// @ts-check
// Puts a history in order: requests with their answers, marks with their ends, the log by delivery.
import { grouped } from './evidence.mjs'
import { entriesOf, stepsOf } from './log.mjs'
import { DamagedHistory } from './read.mjs'
import { follow } from './story.mjs'

/** @typedef {import('./words.mjs').Accept} Accept */
/** @typedef {import('./words.mjs').Act} Act */
/** @typedef {import('./words.mjs').Case} Case */
/** @typedef {import('./words.mjs').Fault} Fault */
/** @typedef {import('./words.mjs').Final} Final */
/** @typedef {import('./words.mjs').Line} Line */
/** @typedef {import('./words.mjs').Run} Run */
/** @typedef {import('./words.mjs').Rules} Rules */

/** @param {Line[]} lines @param {Final} record @param {Rules} rules @returns {Case} */
export function caseOf(lines, record, rules) {
  const kinds = grouped(lines, ({ kind }) => kind)
  /** @param {string} kind */
  const of = (kind) => kinds.get(kind) ?? []
  const accepts = exchanges(of('accept')).map(acceptOf)
  if (accepts.length === 0) throw new DamagedHistory('nobody ever asked for anything to be accepted')
  const entries = entriesOf(record.log)
  const runs = runsOf(of('mark'))
  return {
    lines: lines.length,
    accepts,
    acceptsOf: grouped(accepts, ({ key }) => key),
    acts: exchanges([...of('fence'), ...of('act')]).map(actOf),
    runsOf: grouped(runs, ({ delivery }) => delivery),
    probesOf: grouped(of('probe'), ({ data }) => String(data.attempt)),
    reportsOf: grouped(of('report'), ({ data }) => String(data.attempt)),
    faults: [
      ...faultsOf([...of('fault'), ...of('restart').map(asFault)], lastOf(lines)),
      ...ownKills(of('end')),
    ],
    ...phasesOf(of('phase')),
    record,
    messages: new Map(record.messages.map((message) => [message.id, message])),
    deliveries: new Map(record.deliveries.map((delivery) => [delivery.id, delivery])),
    deliveriesOf: grouped(record.deliveries, ({ message }) => message),
    entries,
    stories: new Map([...stepsOf(entries)].map(([id, steps]) => [id, follow(id, steps)])),
    ...readingOf(of('settled')),
    rules,
  }
}

/** The conductor waits until nothing moves, for a while; then it reads the record. @param {Line[]} settled @returns {{ readAt: number, moving: boolean }} */
function readingOf([line]) {
  return {
    readAt: line?.t ?? Number.POSITIVE_INFINITY,
    moving: line?.data.settled === false && line.data.isMoving !== false,
  }
}

/** @param {Line[]} lines */
function lastOf(lines) {
  return lines.reduce((last, { t }) => Math.max(last, t), 0)
}

/** Each request with its answer, if it got one. @param {Line[]} lines @returns {{ invoke: Line, answer: Line | undefined }[]} */
function exchanges(lines) {
  /** @type {Map<string, { invoke: Line, answer: Line | undefined }>} */
  const found = new Map()
  for (const line of lines) {
    const { op, type } = line.data
    const key = `${line.file} ${op}`
    const known = found.get(key)
    if (type === 'invoke' && known === undefined) found.set(key, { invoke: line, answer: undefined })
    else if (type === 'invoke') throw new DamagedHistory(`${line.file}:${line.number} invokes ${op} again`)
    else if (known === undefined || known.answer !== undefined) {
      throw new DamagedHistory(`${line.file}:${line.number} answers ${op}, which does not wait for an answer`)
    } else known.answer = line
  }
  return [...found.values()]
}

/** @param {Line | undefined} answer @returns {'ok' | 'fail' | 'info'} */
function typeOf(answer) {
  const type = answer?.data.type ?? 'info'
  if (type === 'ok' || type === 'fail' || type === 'info') return type
  throw new DamagedHistory(`${answer?.file}:${answer?.number} is neither ok nor fail nor info`)
}

/** @param {{ invoke: Line, answer: Line | undefined }} exchange @returns {Accept} */
function acceptOf({ invoke, answer }) {
  const { key, conversation, to, digest, changed } = invoke.data
  if (typeof key !== 'string' || !Array.isArray(to) || typeof digest !== 'string') {
    throw new DamagedHistory(`${invoke.file}:${invoke.number} does not say what is to be accepted`)
  }
  return {
    key,
    changed: changed === true,
    conversation,
    to,
    digest,
    type: typeOf(answer),
    deliveries: answer?.data.deliveries ?? [],
    invoke,
    ...present({ code: answer?.data.code, id: answer?.data.id, answer }),
  }
}

/** @param {{ invoke: Line, answer: Line | undefined }} exchange @returns {Act} */
function actOf({ invoke, answer }) {
  const { kind, act, fence, scope, id, until, reason } = invoke.data
  const field = kind === 'fence' ? `${fence}:${scope}` : undefined
  return {
    act,
    type: typeOf(answer),
    invoke,
    ...present({ fence: field, id, until, reason, logId: answer?.data.logId, answer }),
  }
}

/** Without the members that are not there. @template {object} Members @param {Members} members @returns {any} */
function present(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

/** Every begin mark with its end mark, in the order in which they began. @param {Line[]} marks @returns {Run[]} */
function runsOf(marks) {
  /** @type {Run[]} */
  const runs = []
  /** @type {Map<string, Run>} by process and attempt */
  const open = new Map()
  for (const line of marks.toSorted((one, other) => one.t - other.t || one.number - other.number)) {
    const { type, delivery, number, outcome } = line.data
    const attempt = `${delivery}/${number}`
    const place = `${line.file} ${attempt}`
    if (type === 'begin') {
      const run = runOf(line, attempt)
      runs.push(run)
      open.set(place, run)
      continue
    }
    const run = open.get(place)
    if (run === undefined)
      throw new DamagedHistory(`${line.file}:${line.number} ends ${attempt}, which had not begun`)
    open.delete(place)
    run.end = line
    run.outcome = outcome ?? 'result'
  }
  return runs
}

/** @param {Line} begin @param {string} attempt @returns {Run} */
function runOf(begin, attempt) {
  const { delivery, number, epoch, replay, digest, node } = begin.data
  if (typeof delivery !== 'string' || !Number.isInteger(number)) {
    throw new DamagedHistory(`${begin.file}:${begin.number} does not say which attempt it marks`)
  }
  return { delivery, attempt, number, epoch, replay: replay === true, digest, node, begin }
}

/** @param {Line[]} lines @param {number} last @returns {Fault[]} */
function faultsOf(lines, last) {
  /** @type {Map<string, Fault>} */
  const faults = new Map()
  for (const line of lines) {
    const { id, name, type, target } = line.data
    const node = target?.role === 'node' ? String(target.name) : undefined
    if (type === 'begin') faults.set(String(id), { id: String(id), name, from: line.t, to: last, node, line })
    else endFault(faults, line)
  }
  return [...faults.values()]
}

/** A node that the conductor ended and started itself. @param {Line} line @returns {Line} */
function asFault(line) {
  const { target } = line.data
  return {
    ...line,
    data: { ...line.data, id: `restart of ${target?.name} ${line.data.nth ?? ''}`, name: 'restart' },
  }
}

/** @param {Map<string, Fault>} faults @param {Line} line */
function endFault(faults, line) {
  const fault = faults.get(String(line.data.id))
  if (fault === undefined) {
    throw new DamagedHistory(`${line.file}:${line.number} ends fault ${line.data.id}, which had not begun`)
  }
  fault.to = line.t
}

/** Processes that killed themselves where the conductor told them to. @param {Line[]} ends @returns {Fault[]} */
function ownKills(ends) {
  return ends.flatMap((line) => {
    if (line.data.point === undefined) return []
    const node = line.role === 'node' ? line.name : undefined
    return [
      {
        id: `${line.name} ${line.pid}`,
        name: `kill at ${line.data.point}`,
        from: line.t,
        to: line.t,
        node,
        line,
      },
    ]
  })
}

/** @param {Line[]} lines @returns {{ load: Line, heal: Line, final: Line }} */
function phasesOf(lines) {
  /** @param {string} name */
  const phase = (name) => {
    const line = lines.find(({ data }) => data.phase === name)
    if (line === undefined)
      throw new DamagedHistory(`the conductor tells of no phase ${name}: the run did not end`)
    return line
  }
  return { load: phase('load'), heal: phase('heal'), final: phase('final') }
}
