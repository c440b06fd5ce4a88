import { describe, expect, it } from 'vitest'
import { transitions } from '../../src/contract/states.js'
import { isTransition, transitions as known } from '../../src/testing/checker/transitions.js'
import { bends } from './bend.js'
import { history, host, killed, nodesOf, verdictOf } from './stage.js'
import { createWorld, type Told, type World } from './world.js'

describe('a history in which nothing is wrong', () => {
  const healthy: Record<string, (world: World, id: string) => void> = {
    'nothing but what heals': () => undefined,
    'an answer that was lost after it happened, and asked for again': (made) => {
      made.accept('k2', 'done', host)
      made.accept('k2', 'ok', host)
    },
    'an answer that was lost after it happened, and never asked for again': (made) =>
      made.accept('k2', 'done', host),
    'an answer that was lost before it happened': (made) => made.accept('k2', 'not', host),
    'a request that was refused, then accepted': (made) => {
      made.accept('k2', 'fail', host)
      made.accept('k2', 'ok', host)
    },
    'a repeat, and other content under its key': (made) => {
      made.accept('k1', 'ok', host)
      made.accept('k1', 'changed', host)
    },
    'several recipients, sessions among them': (made) =>
      made.accept('k2', 'ok', [{ host: 'h1' }, { host: 'h2' }, { session: 's1' }]),
    'a redrive after not_sent': (made, id) => {
      const [n1] = nodesOf(made)
      made.claim(n1, id)
      for (const outcome of ['not_sent', 'not_sent', 'result'] as const) made.run(n1, id, outcome)
    },
    'a takeover of what was claimed': (made, id) => {
      const [n1, n2] = nodesOf(made)
      made.claim(n1, id)
      made.kill(n1, id, 'idle')
      made.takeOver(n2)
      made.run(n2, id, 'result')
    },
    'a kill before the executor began': (made, id) => {
      const [n1] = nodesOf(made)
      made.claim(n1, id)
      made.kill(n1, id, 'begun')
      made.restart(n1)
    },
    'a kill while it ran': (made, id) => {
      const [n1] = nodesOf(made)
      made.claim(n1, id)
      made.kill(n1, id, 'running')
      made.restart(n1)
    },
    'a kill while it ran, and an operator who knows': (made, id) => {
      const [n1] = nodesOf(made)
      made.claim(n1, id)
      made.kill(n1, id, 'running')
      made.restart(n1)
      made.settle(n1, id, 'not_sent', 'resolve_attempt', 'operator')
    },
    'a handler that threw, one over its time limit whose outcome came late': (made, id) => {
      const [n1, n2] = nodesOf(made)
      made.claim(n1, id)
      made.run(n1, id, 'late')
      made.accept('k2', 'ok', host)
      const thrown = made.ids().at(-1) ?? ''
      made.claim(n2, thrown)
      made.run(n2, thrown, 'outcome_unknown')
    },
    'fences of all kinds, and a release': (made, id) => {
      const [n1] = nodesOf(made)
      made.setFence('pause', 'host:h1')
      made.claim(n1, id)
      made.lift('pause:host:h1')
      made.setFence('hold', 'conversation:c1')
      made.claim(n1, id)
      made.release(id)
      made.claim(n1, id)
      made.run(n1, id, 'result')
      made.accept('k2', 'ok', host)
      made.setFence('block', 'hub')
      made.claim(n1, made.ids().at(-1) ?? '')
    },
    'a fence whose answer was lost': (made, id) => {
      const [n1] = nodesOf(made)
      made.setFence('pause', 'hub', 'done')
      made.claim(n1, id)
      made.setFence('hold', 'host:h2', 'not')
    },
    'a hold between claim and begin': (made, id) => {
      const [n1] = nodesOf(made)
      made.claim(n1, id)
      made.setFence('hold', 'hub')
      made.take(n1, id)
    },
  }

  it.each(Object.entries(healthy))('%s', (_, make) => {
    expect(verdictOf(history(make)).violations).toEqual([])
  })

  it('a replay that was granted', () => {
    const told = history((made, id) => {
      const [n1] = nodesOf(made)
      made.claim(n1, id)
      made.kill(n1, id, 'running')
      n1.open.clear()
      made.join('n1', 'h1')
      made.record('begin', 'h1/n1', [[`${id}/1`, 'executing', 'executing']])
      const row = made.row(id)
      Object.assign(row, { epoch: row.epoch + 1, owner: `h1/n1#${n1.incarnation}` })
      made.mark(n1, id, 'begin', { replay: true })
      made.mark(n1, id, 'end', { replay: true, outcome: 'result' })
      made.settle(n1, id, 'done')
    })
    expect(verdictOf(told).violations).toEqual([])
  })

  it('a probe that found no effect, and the next attempt', () => {
    expect(verdictOf(probed({ effect: 'none' })).violations).toEqual([])
  })

  it('counts what was acknowledged, and what nobody knows with its causes', () => {
    const { acknowledged, lost, twice, unknown, explained } = verdictOf(killed())
    expect({ acknowledged, lost, twice, unknown, explained }).toEqual({
      acknowledged: 2,
      lost: 0,
      twice: 0,
      unknown: 1,
      explained: 1,
    })
  })
})

/** A run that was killed; a later process asked, and the attempt was settled as not_sent and tried again. */
function probed({ effect, asked = true }: { effect: 'none' | 'result' | 'later'; asked?: boolean }): Told {
  return history((made, id) => {
    const [n1] = nodesOf(made)
    made.claim(n1, id)
    made.take(n1, id)
    made.mark(n1, id, 'begin')
    if (effect === 'result') made.mark(n1, id, 'end', { outcome: 'result' })
    const { pid } = n1
    made.fault('kill', { role: 'node', name: 'n1', pid }, () => undefined)
    n1.open.clear()
    made.join('n1', 'h1')
    if (asked) made.note(n1, { kind: 'probe', attempt: `${id}/1`, answer: 'not_executed' })
    if (effect === 'later') made.mark({ ...n1, pid }, id, 'end', { outcome: 'result' })
    made.settle(n1, id, 'not_sent')
  })
}

describe('a history in which something is wrong', () => {
  /** Every bend applies to this one. */
  const rich = () =>
    history((made, id) => {
      const [n1, n2] = nodesOf(made)
      made.accept('k1', 'changed', host)
      made.setFence('pause', 'conversation:c9')
      made.lift('pause:conversation:c9')
      made.claim(n1, id)
      for (const outcome of ['not_sent', 'result'] as const) made.run(n1, id, outcome)
      made.accept('k2', 'ok', host)
      const cut = made.ids().at(-1) ?? ''
      made.claim(n2, cut)
      made.kill(n2, cut, 'running')
      made.restart(n2)
    })

  it.each(bends)('$name', ({ bend }) => {
    const told = rich()
    expect(verdictOf(told).violations).toEqual([])
    const wanted = bend(told, 0)
    expect(wanted).toBeDefined()
    const { ok, violations } = verdictOf(told)
    expect(ok).toBe(false)
    expect(violations).toContainEqual(expect.objectContaining(wanted))
    const found = violations.filter(
      ({ invariant, id }) => invariant === wanted?.invariant && id === wanted.id,
    )
    for (const { evidence } of found) expect(evidence.join('\n')).not.toBe('')
  })

  it('an effect before the probe, and one after it', () => {
    for (const effect of ['result', 'later'] as const) {
      const { violations, twice } = verdictOf(probed({ effect }))
      expect(violations.map(({ invariant }) => invariant)).toContain('I2')
      expect(twice).toBe(1)
    }
  })

  it('a run that nobody asked about, tried again', () => {
    expect(verdictOf(probed({ effect: 'none', asked: false })).twice).toBe(1)
  })

  it('a replay that nobody granted', () => {
    const told = history((made, id) => {
      const [n1] = nodesOf(made)
      made.claim(n1, id)
      made.take(n1, id)
      made.mark(n1, id, 'begin')
      made.mark(n1, id, 'begin', { replay: true })
      made.mark(n1, id, 'end', { outcome: 'result' })
      made.settle(n1, id, 'done')
    })
    const { violations } = verdictOf(told)
    expect(violations.map(({ text }) => text)).toContainEqual(
      expect.stringContaining('a replay that nobody granted'),
    )
  })

  it.each(['host:h1', 'conversation:c1', 'session:s1', 'hub'])('a begin under a hold of %s', (scope) => {
    const told = history((made) => {
      const [n1] = nodesOf(made)
      made.accept('k2', 'ok', [{ session: 's1' }])
      const id = made.ids().at(-1) ?? ''
      made.claim(n1, id)
      made.setFence('hold', scope)
      made.fences.clear()
      made.run(n1, id, 'result')
      made.fences.add(`hold:${scope}`)
    })
    const { violations } = verdictOf(told)
    expect(violations.map(({ invariant }) => invariant)).toEqual(['I3'])
    expect(violations[0]?.evidence).toHaveLength(2)
  })

  it.each(['host:h2', 'conversation:c2', 'session:s2'])(
    'but not under a hold of %s, which does not cover it',
    (scope) => {
      const told = history((made, id) => {
        const [n1] = nodesOf(made)
        made.setFence('hold', scope)
        made.claim(n1, id)
        made.run(n1, id, 'result')
      })
      expect(verdictOf(told).violations).toEqual([])
    },
  )

  it('a released one that passes a hold twice, or one that was set since', () => {
    for (const since of [false, true]) {
      const told = history((made, id) => {
        const [n1] = nodesOf(made)
        made.setFence('hold', 'hub')
        made.claim(n1, id)
        made.release(id)
        if (since) {
          made.lift('hold:hub')
          made.setFence('hold', 'hub')
          made.fences.clear()
        }
        made.claim(n1, id)
        made.run(n1, id, 'not_sent')
        made.fences.clear()
        made.run(n1, id, 'result')
        made.fences.add('hold:hub')
      })
      expect(verdictOf(told).violations.map(({ invariant }) => invariant)).toContain('I3')
    }
  })

  it('a claim after a fence has lapsed is none, one before it is', () => {
    const lapsing = (afterMs: number) => {
      const told = history((made, id) => {
        const [n1] = nodesOf(made)
        made.setFence('pause', 'hub')
        made.fences.clear()
        made.claim(n1, id)
        made.fences.add('pause:hub')
      })
      for (const { fields, id } of told.final.log) {
        const reason = fields.find(([name, value]) => name === 'reason' && value.startsWith('pause'))
        if (reason !== undefined) reason[1] = `{"until":${Number(id.split('-')[0]) + afterMs}}`
      }
      return verdictOf(told).violations.map(({ invariant }) => invariant)
    }
    expect(lapsing(1)).toEqual([])
    expect(lapsing(1000)).toEqual(['I3'])
  })

  it('a fleet that accepts too little, or executes nothing', () => {
    const told = history(() => undefined)
    expect(verdictOf(told, { leastPerSecond: 1000 }).violations.map(({ id }) => id)).toEqual(['accepts'])
    const idle = createWorld()
    idle.accept('k1', 'fail', host)
    idle.heal()
    expect(verdictOf(idle.told(), { leastPerSecond: 0 }).violations.map(({ id }) => id)).toEqual([
      'executions',
    ])
  })

  it('an unknown one where every node has a probe', () => {
    expect(verdictOf(killed(), { probe: true }).violations.map(({ invariant }) => invariant)).toEqual([
      'unknown',
    ])
  })

  it('an unknown one where every node has a probe, unless its node lost its mirror', () => {
    const told = killed()
    for (const lines of told.files.values()) {
      for (const line of lines) if (line['kind'] === 'fault') line['name'] = 'mirror-deleted'
    }
    expect(verdictOf(told, { probe: true })).toMatchObject({ unknown: 1, explained: 1, violations: [] })
  })
})

it('knows the transitions of the contract', () => {
  for (const { from, to } of transitions) expect(isTransition(from, to), `${from}>${to}`).toBe(true)
  const written = Object.entries(known).flatMap(([from, all]) => all.map((to) => `${from}>${to}`))
  expect(written.toSorted()).toEqual(transitions.map(({ from, to }) => `${from}>${to}`).toSorted())
})
