// Puts a history in order: requests with their answers, marks with their ends, the log by delivery.
import { grouped } from './evidence.js'
import { entriesOf, stepsOf } from './log.js'
import { DamagedHistory } from './read.js'
import { follow } from './story.js'
import type { Accept, Act, AnswerType, Case, Fault, Final, Line, Rules, Run } from './words.js'

/** @throws DamagedHistory where lines contradict each other, or something that every run has is not there */
export function caseOf(lines: readonly Line[], record: Final, rules: Rules): Case {
  const kinds = grouped(lines, ({ kind }) => kind)
  const of = (kind: string) => kinds.get(kind) ?? []
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

/** The conductor waits until nothing moves, for a while; then it reads the record. */
function readingOf([line]: readonly Line[]): Pick<Case, 'readAt' | 'moving'> {
  return {
    readAt: line?.t ?? Number.POSITIVE_INFINITY,
    moving: line?.data.settled === false && line.data.isMoving !== false,
  }
}

function lastOf(lines: readonly Line[]): number {
  return lines.reduce((last, { t }) => Math.max(last, t), 0)
}

interface Exchange {
  readonly invoke: Line
  answer: Line | undefined
}

/** Each request with its answer, if it got one. */
function exchanges(lines: readonly Line[]): Exchange[] {
  const found = new Map<string, Exchange>()
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

function typeOf(answer: Line | undefined): AnswerType {
  const type = answer?.data.type ?? 'info'
  if (type === 'ok' || type === 'fail' || type === 'info') return type
  throw new DamagedHistory(`${answer?.file}:${answer?.number} is neither ok nor fail nor info`)
}

function acceptOf({ invoke, answer }: Exchange): Accept {
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
    ...present({ code: answer?.data.code, id: idOf(answer), answer }),
  }
}

function actOf({ invoke, answer }: Exchange): Act {
  const { kind, act, fence, scope, until, reason } = invoke.data
  const field = kind === 'fence' ? `${fence}:${scope}` : undefined
  return {
    act: String(act),
    type: typeOf(answer),
    invoke,
    ...present({ fence: field, id: idOf(invoke), until, reason, logId: answer?.data.logId, answer }),
  }
}

/** Of the message or the delivery that a line is about. */
function idOf(line: Line | undefined): string | undefined {
  const id = line?.data.id
  return id === undefined ? undefined : String(id)
}

type Present<Members> = { [Name in keyof Members]?: Exclude<Members[Name], undefined> }

/** Without the members that are not there. */
function present<Members extends object>(members: Members): Present<Members> {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== undefined),
  ) as Present<Members>
}

/** Every begin mark with its end mark, in the order in which they began. */
function runsOf(marks: readonly Line[]): Run[] {
  const runs: Run[] = []
  /** By process and attempt. */
  const open = new Map<string, Run>()
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

function runOf(begin: Line, attempt: string): Run {
  // An epoch that is not told compares with none.
  const { delivery, number, epoch = Number.NaN, replay, digest, node } = begin.data
  if (typeof delivery !== 'string' || typeof number !== 'number' || !Number.isInteger(number)) {
    throw new DamagedHistory(`${begin.file}:${begin.number} does not say which attempt it marks`)
  }
  return { delivery, attempt, number, epoch, replay: replay === true, digest, node: String(node), begin }
}

function faultsOf(lines: readonly Line[], last: number): Fault[] {
  const faults = new Map<string, Fault>()
  for (const line of lines) {
    const { name, type, target } = line.data
    const id = String(line.data.id)
    const node = target?.role === 'node' ? String(target.name) : undefined
    if (type === 'begin') faults.set(id, { id, name: String(name), from: line.t, to: last, node, line })
    else endFault(faults, line)
  }
  return [...faults.values()]
}

/** A node that the conductor ended and started itself. */
function asFault(line: Line): Line {
  const { target } = line.data
  return {
    ...line,
    data: { ...line.data, id: `restart of ${target?.name} ${line.data.nth ?? ''}`, name: 'restart' },
  }
}

function endFault(faults: ReadonlyMap<string, Fault>, line: Line): void {
  const fault = faults.get(String(line.data.id))
  if (fault === undefined) {
    throw new DamagedHistory(`${line.file}:${line.number} ends fault ${line.data.id}, which had not begun`)
  }
  fault.to = line.t
}

/** Processes that killed themselves where the conductor told them to. */
function ownKills(ends: readonly Line[]): Fault[] {
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

function phasesOf(lines: readonly Line[]): Pick<Case, 'load' | 'heal' | 'final'> {
  const phase = (name: string) => {
    const line = lines.find(({ data }) => data.phase === name)
    if (line === undefined)
      throw new DamagedHistory(`the conductor tells of no phase ${name}: the run did not end`)
    return line
  }
  return { load: phase('load'), heal: phase('heal'), final: phase('final') }
}
