import { judge, type Rules } from '../../src/testing/checker/index.js'
import { createWorld, linesIn, type Told, type World } from './world.js'

export const host = [{ host: 'h1' }]

export function verdictOf(told: Told, rules: Partial<Rules> = {}) {
  return judge(linesIn(told), told.final, rules)
}

/** A history of two nodes on one host and a message for it, given to `make`; everything else heals. */
export function history(make: (world: World, id: string) => void): Told {
  const made = createWorld()
  made.join('n1', 'h1')
  made.join('n2', 'h1')
  made.accept('k1', 'ok', host)
  made.accept('k0', 'ok', host)
  const [id = '', other = ''] = made.ids()
  const [n1] = nodesOf(made)
  made.claim(n1, other)
  made.run(n1, other, 'result')
  make(made, id)
  made.heal()
  return made.told()
}

export function nodesOf({ nodes }: World) {
  const [n1, n2] = [...nodes.values()]
  if (n1 === undefined || n2 === undefined) throw new Error('a world begins with two nodes')
  return [n1, n2] as const
}

/** A kill in the middle of a run; the next process of the node reports it unknown. */
export function killed(): Told {
  return history((made, id) => {
    const [n1] = nodesOf(made)
    made.claim(n1, id)
    made.kill(n1, id, 'running')
    made.restart(n1)
  })
}
