// @ts-check
// Where RESP messages end, found as the bytes come in: nothing is read twice, however they are cut.

/**
 * Takes the next bytes; answers at which offsets in them a whole message ends.
 * @typedef {(bytes: Buffer) => number[]} FrameScanner
 */

const newline = 0x0a
/** Kinds whose line says how many bytes follow it, and of how many values they consist. */
const bulks = new Set(['$', '!', '='])
const aggregates = new Map([
  ['*', 1],
  ['~', 1],
  ['>', 1],
  ['%', 2],
])

/** For commands and for replies, of RESP2 and RESP3 (attributes aside). @returns {FrameScanner} */
export function respScanner() {
  /** How many values are still to come, from the outermost aggregate to the innermost. @type {number[]} */
  const open = []
  /** Bytes of a bulk string still to come, its line end included. */
  let skip = 0
  let line = ''

  /** A value is whole, and with it perhaps those it is the last one of. @returns {boolean} that of a message */
  function endValue() {
    while (open.length > 0) {
      const left = (open.pop() ?? 0) - 1
      if (left > 0) {
        open.push(left)
        return false
      }
    }
    return true
  }

  /** @param {string} text @returns {boolean} */
  function takeLine(text) {
    const kind = text[0] ?? ''
    const size = Number(text.slice(1))
    const each = aggregates.get(kind)
    if (bulks.has(kind) && size >= 0) skip = size + 2
    else if (each !== undefined && size > 0) open.push(size * each)
    else return endValue()
    return false
  }

  return (bytes) => {
    const ends = []
    let at = 0
    while (at < bytes.length) {
      if (skip > 0) {
        const taken = Math.min(skip, bytes.length - at)
        skip -= taken
        at += taken
        if (skip === 0 && endValue()) ends.push(at)
        continue
      }
      const lineEnd = bytes.indexOf(newline, at)
      line += bytes.toString('latin1', at, lineEnd < 0 ? bytes.length : lineEnd)
      if (lineEnd < 0) break
      at = lineEnd + 1
      const text = line.trimEnd()
      line = ''
      if (takeLine(text)) ends.push(at)
    }
    return ends
  }
}

/** The first words of a command. @param {Buffer} command @param {number} [most] @returns {string[]} */
export function wordsOf(command, most = 4) {
  const words = []
  let at = command.indexOf(newline) + 1
  while (at < command.length && words.length < most) {
    const lineEnd = command.indexOf(newline, at)
    const size = Number(command.toString('latin1', at + 1, lineEnd))
    words.push(command.toString('utf8', lineEnd + 1, lineEnd + 1 + size))
    at = lineEnd + 1 + size + 2
  }
  return words
}
