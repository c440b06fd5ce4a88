import { describe, expect, it } from 'vitest'
import { history, nodesOf, verdictOf } from './stage.js'
import type { World } from './world.js'

const wasReplica = 'the server was a replica'
const entryGone = 'log entry 1700000000000-0, seen by h1/n1, is gone'
const redis = { role: 'redis', name: 'redis', pid: 9 }

/** What a fault on `redis` and, before it or while it lasts, one on a node made of one delivery. */
function judged(make: (world: World, id: string) => void) {
  return verdictOf(
    history((made, id) => make(made, id)),
    { probe: true },
  )
}

function textOf(verdict: ReturnType<typeof judged>) {
  return verdict.violations
    .filter(({ invariant }) => invariant === 'unknown')
    .map(({ text }) => text.slice(text.indexOf(': ') + 2))
}

describe('a delivery that is unknown because of history_lost', () => {
  it('is explained where the server was made a replica while the node was down that did not present', () => {
    const verdict = judged((made, id) => {
      const [n1] = nodesOf(made)
      made.fault('replica', redis, () => {
        made.kill(n1, id, 'idle')
        made.loseHistory(wasReplica)
        made.setAside(id, 'h1/n1')
      })
    })
    expect(verdict).toMatchObject({ unknown: 1, explained: 1, violations: [] })
  })

  it('is explained where a node lost its mirror long before, and so never speaks again', () => {
    const verdict = judged((made, id) => {
      const [n1] = nodesOf(made)
      made.fault('mirror-deleted', { role: 'node', name: 'n1', pid: n1.pid }, () => undefined)
      made.fault('replica', redis, () => {
        made.loseHistory(wasReplica)
        made.setAside(id, 'h1/n1')
      })
    })
    expect(textOf(verdict)).toEqual([])
  })

  it.each(['aof-old-copy', 'aof-cut', 'aof-flip', 'aof-missing-manifest', 'flushall'])(
    'is explained where an entry is gone, and %s took it',
    (name) => {
      const verdict = judged((made, id) => {
        made.fault(name, redis, () => undefined)
        made.loseHistory(entryGone)
        made.setAside(id, 'h1/n1')
      })
      expect(textOf(verdict)).toEqual([])
    },
  )

  it.each<[string, (made: World, id: string) => void, RegExp]>([
    [
      'nothing was done to the node that did not present',
      (made, id) => {
        made.fault('replica', redis, () => made.loseHistory(wasReplica))
        made.setAside(id, 'h1/n1')
      },
      /^h1\/n1 did not present/,
    ],
    [
      'something was done to another node of its host',
      (made, id) => {
        made.kill(nodesOf(made)[1], id, 'idle')
        made.fault('replica', redis, () => made.loseHistory(wasReplica))
        made.setAside(id, 'h1/n1')
      },
      /^h1\/n1 did not present/,
    ],
    [
      'what was done to the node was over before the server was a replica',
      (made, id) => {
        const [n1] = nodesOf(made)
        made.kill(n1, id, 'idle')
        made.restart(n1)
        for (let nth = 0; nth < 2000; nth += 1) made.fault('kill-producer', undefined, () => undefined)
        made.fault('replica', redis, () => made.loseHistory(wasReplica))
        made.setAside(id, 'h1/n1')
      },
      /^h1\/n1 did not present/,
    ],
    [
      'nothing made the server a replica',
      (made, id) => {
        made.kill(nodesOf(made)[0], id, 'idle')
        made.fault('read-only', redis, () => made.loseHistory(wasReplica))
        made.setAside(id, 'h1/n1')
      },
      /and nothing made it one$/,
    ],
    [
      'nothing took the entry that is gone',
      (made, id) => {
        made.fault('replica', redis, () => made.loseHistory(entryGone))
        made.setAside(id, 'h1/n1')
      },
      /and no fault took it away$/,
    ],
    [
      'the server does not sync',
      (made, id) => {
        made.fault('replica', redis, () => made.loseHistory('appendfsync is everysec'))
        made.setAside(id, 'h1/n1')
      },
      /^no fault makes this: appendfsync is everysec/,
    ],
    [
      'the log says of no loss',
      (made, id) => {
        made.fault('replica', redis, () => undefined)
        made.setAside(id, 'h1/n1')
      },
      /^the log says of no loss/,
    ],
    [
      'the log does not say for which node',
      (made, id) => {
        made.fault('replica', redis, () => made.loseHistory(wasReplica))
        made.setAside(id)
      },
      /^the log does not say for which node/,
    ],
  ])('is not explained where %s', (_, make, why) => {
    expect(textOf(judged(make))).toEqual([expect.stringMatching(why)])
  })
})
