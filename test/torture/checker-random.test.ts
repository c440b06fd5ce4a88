import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bends } from './bend.js'
import { verdictOf } from './stage.js'
import { createWorld, type Told, type World } from './world.js'

const acts = [
  'accept',
  'claim',
  'take',
  'run',
  'kill',
  'restart',
  'takeOver',
  'fence',
  'lift',
  'release',
] as const
interface Act {
  readonly act: (typeof acts)[number]
  readonly pick: number
  readonly how: number
}
const scripts = fc.array(fc.record({ act: fc.constantFrom(...acts), pick: fc.nat(999), how: fc.nat(99) }), {
  minLength: 5,
  maxLength: 60,
})

const scopes = ['hub', 'host:h1', 'host:h2', 'conversation:c1', 'session:s1']
const kinds = ['pause', 'hold', 'block']
const recipients = [[{ host: 'h1' }], [{ host: 'h1' }, { host: 'h2' }], [{ session: 's1' }]]
const answers = ['ok', 'ok', 'done', 'not', 'fail', 'changed'] as const
const outcomes = ['result', 'not_sent', 'terminal', 'outcome_unknown', 'late'] as const
const places = ['idle', 'begun', 'running'] as const

function of<Item>(items: readonly Item[], pick: number): Item {
  return items[pick % items.length] as Item
}

/** Twenty keys, each with one content: what is asked for again is a repeat. */
function accept(made: World, accepted: Set<string>, pick: number, how: number): void {
  const content = pick % 20
  const key = `k${content}`
  const answer = of(answers, how)
  if (answer === 'changed' && !accepted.has(key)) return
  if (answer === 'ok' || answer === 'done') accepted.add(key)
  made.accept(key, answer, of(recipients, content), `c${1 + (content % 2)}`)
}

function make(made: World, { act, pick, how }: Act): void {
  const node = of([...made.nodes.values()], pick)
  const id = of(made.ids(), how)
  if (act === 'claim') made.claim(node, id)
  else if (act === 'take') made.take(node, id)
  else if (act === 'run') made.run(node, id, of(outcomes, pick + how))
  else if (act === 'kill') made.kill(node, id, of(places, pick + how))
  else if (act === 'restart') made.restart(node)
  else if (act === 'takeOver') made.takeOver(node)
  else if (act === 'release') made.release(id)
  else if (act === 'lift') made.lift(of([...made.fences, 'pause:hub'], how))
  else made.setFence(of(kinds, pick), of(scopes, how), of(['ok', 'ok', 'done', 'not'] as const, pick + how))
}

function played(script: readonly Act[]): Told {
  const made = createWorld()
  for (const [name, host] of [
    ['n1', 'h1'],
    ['n2', 'h1'],
    ['n3', 'h2'],
  ] as const)
    made.join(name, host)
  made.accept('first', 'ok', [{ host: 'h1' }])
  const accepted = new Set<string>()
  for (const each of script) {
    if (each.act === 'accept') accept(made, accepted, each.pick, each.how)
    else make(made, each)
  }
  made.accept('last', 'ok', [{ host: 'h1' }])
  made.heal()
  return made.told()
}

describe('a history at random', () => {
  it('is green', () => {
    fc.assert(
      fc.property(scripts, (script) => {
        expect(verdictOf(played(script)).violations).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('is red where one thing in it is bent', () => {
    const bent = new Set<string>()
    fc.assert(
      fc.property(scripts, fc.constantFrom(...bends), fc.nat(99), (script, { name, bend }, pick) => {
        const told = played(script)
        const wanted = bend(told, pick)
        if (wanted === undefined) return
        bent.add(name)
        expect(verdictOf(told).violations).toContainEqual(expect.objectContaining(wanted))
      }),
      { numRuns: 600 },
    )
    expect(bent.size).toBeGreaterThan(bends.length / 2)
  })
})
