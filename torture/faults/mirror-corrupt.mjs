// @ts-check
// The beginning of a node's mirror is overwritten while the node is down, and that of its log, which would mend it. It
// does not start on such a file, however often that is tried, until an operator gives it a new one.
import { closeSync, existsSync, openSync, writeSync } from 'node:fs'
import { goOnAsAnother, mirrorOf } from '../mirrors.mjs'

const pageBytes = 4096

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'mirror-corrupt',
  orphans: true,
  targets: ({ nodes }) => nodes.map((name) => `node ${name}`),
  leastMs: 500,
  longestMs: 3000,
  restMs: 2000,
  begin: async (world, random, { target }) => {
    const node = world.find(target)
    await node.end()
    const mirror = mirrorOf(world, target)
    for (const path of [mirror, `${mirror}-wal`].filter((path) => existsSync(path))) {
      const file = openSync(path, 'r+')
      writeSync(file, Buffer.alloc(pageBytes, random.int(1, 255)), 0, pageBytes, 0)
      closeSync(file)
    }
    node.mayEnd = true
    let isUp = false
    node.start().then(
      () => {
        isUp = true
      },
      () => {},
    )
    return async () => {
      if (isUp) throw new Error(`${target} started on a mirror that was overwritten`)
      await goOnAsAnother(world, target)
      node.mayEnd = false
    }
  },
}
