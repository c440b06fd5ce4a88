// @ts-check
// What is put back when this process ends, however it ends (SIGKILL aside): processes, mounts, network namespaces, folders.
import { constants } from 'node:os'

/** @type {Set<() => void>} */
const undoings = new Set()
let watching = false

/** Calls `undo` at the end of this process, the last one given first. It must not wait. @param {() => void} undo @returns {() => void} leaves it out */
export function atEnd(undo) {
  undoings.add(undo)
  watch()
  return () => void undoings.delete(undo)
}

function undoAll() {
  for (const undo of [...undoings].reverse()) {
    undoings.delete(undo)
    undo()
  }
}

function watch() {
  if (watching) return
  watching = true
  process.once('exit', undoAll)
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => {
      // Where somebody else listens the end, and with it ours, is theirs to make.
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal])
    })
  }
}
