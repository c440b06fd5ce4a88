import { type Data, digestOf, type FinalDelivery, type LogEntry, type Told } from './world.js'

/**
 * One way to break a history: what has to be found then, or undefined where it does not apply to this one. `pick`
 * chooses among the places where it does.
 */
export interface Bend {
  readonly name: string
  bend(told: Told, pick: number): { readonly invariant: string; readonly id: string } | undefined
}

function chosen<Item>(items: readonly Item[], pick: number): Item | undefined {
  return items[pick % Math.max(1, items.length)]
}

const linesOf = (told: Told, role: string, is: (line: Data) => boolean): Data[] =>
  [...told.files].flatMap(([file, lines]) => (file.startsWith(`${role}-`) ? lines.filter(is) : []))

const marksOf = (told: Told, is: (line: Data) => boolean = () => true) =>
  linesOf(told, 'marks', is).toSorted((one, other) => Number(one['t']) - Number(other['t']))

const oks = (told: Told) => linesOf(told, 'producer', ({ type }) => type === 'ok')

const doneOf = ({ final }: Told) =>
  final.deliveries.filter(({ attempts }) => attempts.at(-1)?.status === 'done')

const verbOf = ({ fields }: LogEntry) => fields.find(([name]) => name === 'verb')?.[1]

const moves = ({ fields }: LogEntry, id: string, to: string) =>
  fields.some(([name, value], at) => name === 'ids' && value === id && fields[at + 2]?.[1] === to)

function removeDelivery({ final }: Told, gone: FinalDelivery): void {
  final.deliveries = final.deliveries.filter((each) => each !== gone)
  final.held = final.held.filter(({ id }) => id !== gone.id)
  final.unknown = final.unknown.filter(({ id }) => id.split('/')[0] !== gone.id)
  const { byState } = final.audit.conservation
  byState[gone.state] = (byState[gone.state] ?? 0) - 1
  final.audit.conservation.recipients -= 1
  final.audit.deliveries -= 1
}

/** Between two entries that are there. */
function insertBefore(log: LogEntry[], at: number, fields: [string, string][]): void {
  const [ms = '', sequence = '0'] = (log[at - 1]?.id ?? '0-0').split('-')
  log.splice(at, 0, { id: `${ms}-${Number(sequence) + 1}`, fields })
}

function append(log: LogEntry[], fields: [string, string][]): void {
  insertBefore(log, log.length, fields)
}

export const bends: readonly Bend[] = [
  {
    name: 'a delivery of an acknowledged message is gone',
    bend: (told, pick) => {
      const ok = chosen(oks(told), pick)
      const gone = told.final.deliveries.find(({ message }) => message === ok?.['id'])
      if (gone === undefined) return undefined
      removeDelivery(told, gone)
      return { invariant: 'I1', id: gone.id }
    },
  },
  {
    name: 'an acknowledged message is gone',
    bend: (told, pick) => {
      const id = chosen(oks(told), pick)?.['id']
      if (id === undefined) return undefined
      for (const gone of told.final.deliveries.filter(({ message }) => message === id))
        removeDelivery(told, gone)
      told.final.messages = told.final.messages.filter((message) => message.id !== id)
      told.final.audit.messages -= 1
      return { invariant: 'I8', id }
    },
  },
  {
    name: 'a delivery stands twice',
    bend: (told, pick) => {
      const one = chosen(told.final.deliveries, pick)
      if (one === undefined) return undefined
      told.final.deliveries.push({ ...structuredClone(one), id: `${one.id}9` })
      told.final.audit.deliveries += 1
      return { invariant: 'I1', id: one.message }
    },
  },
  {
    name: 'two messages of one key',
    bend: (told, pick) => {
      const one = chosen(told.final.messages, pick)
      if (one === undefined) return undefined
      told.final.messages.push({ ...one, id: `${one.id}9`, recipients: 0 })
      told.final.audit.messages += 1
      return { invariant: 'I6', id: one.key }
    },
  },
  {
    name: 'two answers for one key',
    bend: (told, pick) => {
      const ok = chosen(oks(told), pick)
      if (ok === undefined) return undefined
      const again = { ...ok, op: 'p1/again', t: `${ok['t']}1` }
      told.files
        .get('producer-p1-1.jsonl')
        ?.push({ ...again, type: 'invoke', to: [{ host: 'h1' }], digest: digestOf('x') })
      told.files.get('producer-p1-1.jsonl')?.push({ ...again, id: 'another', deliveries: [] })
      return { invariant: 'I6', id: ok['key'] }
    },
  },
  {
    name: 'other content accepted under a key in use',
    bend: (told, pick) => {
      const changed = linesOf(told, 'producer', (line) => line['changed'] === true && line['type'] === 'fail')
      const line = chosen(changed, pick)
      const ok = oks(told).find(({ key }) => key === line?.['key'])
      if (line === undefined || ok === undefined) return undefined
      Object.assign(line, { type: 'ok', id: ok['id'], deliveries: [] })
      return { invariant: 'I6', id: line['key'] }
    },
  },
  {
    name: 'what was refused is there',
    bend: (told, pick) => {
      const ok = chosen(oks(told), pick)
      if (ok === undefined) return undefined
      for (const line of linesOf(
        told,
        'producer',
        ({ key, type }) => key === ok['key'] && type !== 'invoke',
      )) {
        Object.assign(line, { type: 'fail', code: 'NO_ROUTE' })
      }
      return { invariant: 'I6', id: ok['key'] }
    },
  },
  {
    name: 'the same attempt begun twice',
    bend: (told, pick) => {
      const begin = chosen(
        marksOf(told, ({ type }) => type === 'begin'),
        pick,
      )
      if (begin === undefined) return undefined
      told.files.set('marks-n9-999.jsonl', [{ ...begin, name: 'n9', pid: 999, t: `${begin['t']}000` }])
      return { invariant: 'I2', id: begin['delivery'] }
    },
  },
  {
    name: 'two runs overlap',
    bend: (told) => {
      const begins = marksOf(told, ({ type }) => type === 'begin')
      const second = begins.find(
        ({ number, delivery }) => number === 2 && begins.some((each) => each['delivery'] === delivery),
      )
      const first = begins.find((each) => each['delivery'] === second?.['delivery'] && each['number'] === 1)
      const end = marksOf(told, ({ type }) => type === 'end').find(
        (each) => each['attempt'] === first?.['attempt'],
      )
      if (second === undefined || end === undefined) return undefined
      second['t'] = String(Number(end['t']) - 1000)
      return { invariant: 'I2', id: second['delivery'] }
    },
  },
  {
    name: 'a payload that was not accepted',
    bend: (told, pick) => {
      const done = new Set(doneOf(told).map(({ id }) => id))
      const begin = chosen(
        marksOf(told, ({ type, delivery }) => type === 'begin' && done.has(delivery)),
        pick,
      )
      if (begin === undefined || begin['number'] !== 1) return undefined
      const last = doneOf(told)
        .find(({ id }) => id === begin['delivery'])
        ?.attempts.at(-1)
      if (last?.number !== 1) return undefined
      begin['digest'] = digestOf('something else')
      return { invariant: 'I2', id: begin['delivery'] }
    },
  },
  {
    name: 'a run under an old epoch',
    bend: (told, pick) => {
      const begin = chosen(
        marksOf(told, ({ type }) => type === 'begin'),
        pick,
      )
      if (begin === undefined) return undefined
      begin['epoch'] -= 1
      return { invariant: 'I5', id: begin['delivery'] }
    },
  },
  {
    name: 'a run on a node that was not given it',
    bend: (told, pick) => {
      const begin = chosen(
        marksOf(told, ({ type }) => type === 'begin'),
        pick,
      )
      if (begin === undefined) return undefined
      begin['node'] = 'somebody'
      return { invariant: 'I2', id: begin['delivery'] }
    },
  },
  {
    name: 'reported not_sent, though it ran',
    bend: (told, pick) => {
      const end = chosen(
        marksOf(told, ({ type, outcome }) => type === 'end' && outcome === 'not_sent'),
        pick,
      )
      if (end === undefined) return undefined
      end['outcome'] = 'result'
      return { invariant: 'I2', id: end['delivery'] }
    },
  },
  {
    name: 'done, though nothing ran',
    bend: (told, pick) => {
      const { id, attempts } = chosen(doneOf(told), pick) ?? {}
      if (id === undefined) return undefined
      const attempt = `${id}/${attempts?.at(-1)?.number}`
      for (const [file, lines] of told.files) {
        if (file.startsWith('marks-'))
          told.files.set(
            file,
            lines.filter((line) => line['attempt'] !== attempt),
          )
      }
      return { invariant: 'I2', id }
    },
  },
  {
    name: 'a begin by somebody who does not own it',
    bend: (told, pick) => {
      const { id, attempts } = chosen(doneOf(told), pick) ?? {}
      const entry = told.final.log.find((each) =>
        moves(each, `${id}/${attempts?.at(-1)?.number}`, 'executing'),
      )
      if (id === undefined || entry === undefined) return undefined
      entry.fields[1] = ['actor', 'h1/somebody']
      return { invariant: 'I2', id }
    },
  },
  {
    name: 'taken over while it runs',
    bend: (told, pick) => {
      const { id, attempts } = chosen(doneOf(told), pick) ?? {}
      const at = told.final.log.findIndex((each) => moves(each, `${id}/${attempts?.at(-1)?.number}`, 'done'))
      if (id === undefined || at < 0) return undefined
      const taken: [string, string][] = [
        ['ids', id],
        ['from', 'delivered'],
        ['to', 'delivered'],
      ]
      insertBefore(told.final.log, at, [['verb', 'claim'], ['actor', 'h1/somebody'], ...taken])
      return { invariant: 'I2', id }
    },
  },
  {
    name: 'settled twice',
    bend: (told, pick) => {
      const { id, attempts } = chosen(doneOf(told), pick) ?? {}
      const last = attempts?.at(-1)
      if (id === undefined || last === undefined) return undefined
      const again: [string, string][] = [
        ['ids', `${id}/${last.number}`],
        ['from', 'executing'],
        ['to', 'terminal'],
      ]
      append(told.final.log, [['verb', 'report'], ['actor', last.node], ...again])
      return { invariant: 'I5', id }
    },
  },
  {
    name: 'an outcome that was answered is gone',
    bend: (told, pick) => {
      const reports = linesOf(told, 'node', ({ kind, outcome }) => kind === 'report' && outcome === 'result')
      const attempt = chosen(reports, pick)?.['attempt']
      const id = attempt?.split('/')[0]
      const last = told.final.deliveries.find((each) => each.id === id)?.attempts.at(-1)
      if (last === undefined || last.status !== 'done') return undefined
      last.status = 'executing'
      return { invariant: 'I8', id }
    },
  },
  {
    name: 'an attempt that the record does not know',
    bend: (told, pick) => {
      const begin = chosen(
        marksOf(told, ({ type }) => type === 'begin'),
        pick,
      )
      const delivery = told.final.deliveries.find(({ id }) => id === begin?.['delivery'])
      if (begin === undefined || delivery === undefined) return undefined
      delivery.attempts = delivery.attempts.filter(({ number }) => number < begin['number'])
      return { invariant: 'I8', id: delivery.id }
    },
  },
  {
    name: 'a fence without its lift, over what was claimed',
    bend: (told, pick) => {
      const claims = told.final.log.flatMap((each, at) => (verbOf(each) === 'claim' ? [at] : []))
      const first = claims.filter((at) => told.final.log[at]?.fields.some(([, value]) => value === 'claimed'))
      const at = chosen(
        first.filter((each) => each > 0 && isFirstClaim(told.final.log[each])),
        pick,
      )
      if (at === undefined) return undefined
      const id = told.final.log[at]?.fields.find(([name]) => name === 'ids')?.[1] ?? ''
      insertBefore(told.final.log, at, [
        ['verb', 'pause'],
        ['actor', 'somebody'],
        ['scope', 'hub'],
        ['reason', 'x'],
      ])
      return { invariant: 'I3', id }
    },
  },
  {
    name: 'an acknowledged fence that the log does not have',
    bend: (told, pick) => {
      const ok = chosen(
        linesOf(told, 'operator', ({ type, act }) => type === 'ok' && act === 'set'),
        pick,
      )
      if (ok === undefined) return undefined
      told.final.log = told.final.log.filter(({ id }) => id !== ok['logId'])
      return { invariant: 'I8', id: `set ${ok['fence']}:${ok['scope']}` }
    },
  },
  {
    name: 'an act made twice',
    bend: (told, pick) => {
      const ok = chosen(
        linesOf(told, 'operator', ({ type, act }) => type === 'ok' && act === 'lift'),
        pick,
      )
      if (ok === undefined) return undefined
      const field = `${ok['fence']}:${ok['scope']}`
      append(told.final.log, [
        ['verb', 'lift'],
        ['actor', 'operator'],
        ['fence', field],
      ])
      return { invariant: 'I6', id: `lift ${field}` }
    },
  },
  {
    name: 'a state that the log does not lead to',
    bend: (told, pick) => {
      const one = chosen(told.final.deliveries, pick)
      if (one === undefined) return undefined
      one.state = one.state === 'queued' ? 'claimed' : 'queued'
      return { invariant: 'I5', id: one.id }
    },
  },
  {
    name: 'an epoch that fell back',
    bend: (told, pick) => {
      const one = chosen(
        told.final.deliveries.filter(({ epoch }) => epoch > 0),
        pick,
      )
      if (one === undefined) return undefined
      one.epoch -= 1
      return { invariant: 'I5', id: one.id }
    },
  },
  {
    name: 'a transition that is none',
    bend: (told, pick) => {
      const { id } = chosen(doneOf(told), pick) ?? {}
      if (id === undefined) return undefined
      const back: [string, string][] = [
        ['ids', id],
        ['from', 'delivered'],
        ['to', 'claimed'],
      ]
      append(told.final.log, [['verb', 'claim'], ['actor', 'h1/n1'], ...back])
      return { invariant: 'I5', id }
    },
  },
  {
    name: 'left where it was handed off',
    bend: (told) => {
      const one = doneOf(told).find(({ attempts }) => attempts.length === 1)
      if (one === undefined) return undefined
      one.attempts = []
      return { invariant: 'I7', id: one.id }
    },
  },
  {
    name: 'open, and in no list',
    bend: (told, pick) => {
      const id = chosen(told.final.unknown, pick)?.id
      if (id === undefined) return undefined
      told.final.unknown = told.final.unknown.filter((each) => each.id !== id)
      return { invariant: 'I7', id: id.split('/')[0] ?? '' }
    },
  },
  {
    name: 'unknown, and nothing explains it',
    bend: (told, pick) => {
      const id = chosen(told.final.unknown, pick)?.id
      if (id === undefined) return undefined
      told.files.set(
        'conductor-run-3.jsonl',
        told.files.get('conductor-run-3.jsonl')?.filter(({ kind }) => kind !== 'fault') ?? [],
      )
      for (const end of marksOf(told, ({ type, attempt }) => type === 'end' && attempt === id))
        end['outcome'] = 'result'
      return { invariant: 'unknown', id: id.split('/')[0] ?? '' }
    },
  },
  {
    name: 'a report that was not known again',
    bend: (told, pick) => {
      const listed = new Set(
        told.final.log.flatMap(({ fields }) =>
          fields.flatMap(([name, value], at) =>
            name === 'to' && value === 'unknown' ? [fields[at - 2]?.[1]] : [],
          ),
        ),
      )
      const known = doneOf(told).filter(({ id, attempts }) => !listed.has(`${id}/${attempts.at(-1)?.number}`))
      const one = chosen(known, pick)
      const last = one?.attempts.at(-1)
      if (one === undefined || last === undefined) return undefined
      last.lateReports = 1
      return { invariant: 'I6', id: one.id }
    },
  },
  {
    name: 'an audit that disagrees',
    bend: (told, pick) => {
      const id = chosen(told.final.deliveries, pick)?.id
      if (id === undefined) return undefined
      told.final.audit.disagreements.push({ about: id, what: 'pending under nobody' })
      return { invariant: 'I4', id }
    },
  },
  {
    name: 'recipients that nobody accounts for',
    bend: ({ final }) => {
      final.audit.conservation.recipients += 1
      return { invariant: 'I1', id: 'conservation' }
    },
  },
  {
    name: 'a repair without a damage',
    bend: (told, pick) => {
      const { id } = chosen(told.final.deliveries, pick) ?? {}
      if (id === undefined) return undefined
      append(told.final.log, [
        ['verb', 'reconcile'],
        ['actor', 'sweep'],
        ['repaired', id],
      ])
      return { invariant: 'I4', id }
    },
  },
]

function isFirstClaim(entry: LogEntry | undefined): boolean {
  return entry?.fields.some(([name, value]) => name === 'from' && value === 'queued') ?? false
}
