// @ts-check
// What is put back when this process ends, however it ends (SIGKILL aside): mounts, network namespaces.

/** @type {Set<() => void>} */
const undoings = new Set()
let watching = false

/** Calls `undo` at the end of this process. It must not wait. @param {() => void} undo @returns {() => void} leaves it out */
export function atEnd(undo) {
  undoings.add(undo)
  watch()
  return () => void undoings.delete(undo)
}

function undoAll() {
  for (const undo of undoings) undo()
  undoings.clear()
}

function watch() {
  if (watching) return
  watching = true
  process.once('exit', undoAll)
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    const end = () => {
      // Somebody else listens: the end, and with it ours, is theirs to make.
      if (process.listenerCount(signal) > 1) return
      process.removeListener(signal, end)
      undoAll()
      process.kill(process.pid, signal)
    }
    process.on(signal, end)
  }
}
