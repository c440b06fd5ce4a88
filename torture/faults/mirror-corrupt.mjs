// @ts-check
// The beginning of a node's mirror is overwritten while the node is down, and that of its log, which would mend it. It
// has to refuse such a file, until an operator gives it a new one.
import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs'
import { goOnAsAnother, mirrorOf } from '../mirrors.mjs'
import { Misbehaviour } from '../schedule.mjs'

const pageBytes = 4096
const refusedWithinMs = 12_000

/** @type {import('../schedule.mjs').Fault} */
export const fault = {
  name: 'mirror-corrupt',
  orphans: true,
  targets: ({ nodes }) => nodes.map((name) => `node ${name}`),
  longestMs: 1000,
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
    const saidBefore = refusalsIn(node.logFile)
    node.mayEnd = true
    // It is given up by what begins it anew below.
    node.start().catch(() => {})
    await node.nextEnd(refusedWithinMs).catch((error) => {
      throw new Misbehaviour(`a mirror that was overwritten was not refused: ${error.message}`)
    })
    if (refusalsIn(node.logFile) === saidBefore) {
      throw new Misbehaviour(`${target} ended on a mirror that was overwritten, and did not say why`)
    }
    return async () => {
      await goOnAsAnother(world, target)
      node.mayEnd = false
    }
  },
}

/** @param {string} logFile */
function refusalsIn(logFile) {
  return readFileSync(logFile, 'utf8').split('MIRROR_UNUSABLE').length - 1
}
