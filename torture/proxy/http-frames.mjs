// @ts-check
// Where HTTP/1.1 messages end, found as the bytes come in.

/** @typedef {import('./resp-frames.mjs').FrameScanner} FrameScanner */

const newline = 0x0a

/**
 * @param {{ methodOf?: () => string }} [replies] for answers: the method of the request that the next one answers
 * @returns {FrameScanner}
 */
export function httpScanner(replies) {
  /** @type {'head' | 'length' | 'chunk-size' | 'chunk' | 'trailer' | 'until-close'} */
  let state = 'head'
  /** @type {string[]} */
  let head = []
  let skip = 0
  let line = ''

  /** The head is whole. @returns {boolean} nothing follows it */
  function takeHead() {
    const [first = '', ...fields] = head
    head = []
    const status = replies === undefined ? undefined : Number(first.split(' ')[1])
    if (status !== undefined && status < 200) return false
    const value = (/** @type {string} */ name) =>
      fields
        .find((field) => field.toLowerCase().startsWith(`${name}:`))
        ?.slice(name.length + 1)
        .trim()
    const isBare = status === 204 || status === 304 || replies?.methodOf?.() === 'HEAD'
    const length = value('content-length')
    if (isBare) return true
    if (value('transfer-encoding')?.toLowerCase().endsWith('chunked')) state = 'chunk-size'
    else if (length !== undefined) return toSkip('length', Number(length))
    else if (status !== undefined) state = 'until-close'
    else return true
    return false
  }

  /** @param {'length' | 'chunk'} next @param {number} size @returns {boolean} there is nothing to skip */
  function toSkip(next, size) {
    skip = size
    if (size === 0) return true
    state = next
    return false
  }

  /** @param {string} text @returns {boolean} the message is whole */
  function takeLine(text) {
    if (state === 'chunk-size') {
      // A chunk ends with a line of its own; the last one has no bytes and is followed by trailers.
      const size = Number.parseInt(text, 16)
      if (size === 0) state = 'trailer'
      else toSkip('chunk', size + 2)
      return false
    }
    if (state === 'trailer') {
      if (text !== '') return false
      state = 'head'
      return true
    }
    // Empty lines before a message are none of it.
    if (text !== '') head.push(text)
    return text === '' && head.length > 0 && takeHead()
  }

  /** @returns {boolean} the message is whole */
  function endSkip() {
    const isWhole = state === 'length'
    state = isWhole ? 'head' : 'chunk-size'
    return isWhole
  }

  return (bytes) => {
    const ends = []
    let at = 0
    while (at < bytes.length && state !== 'until-close') {
      if (skip > 0) {
        const taken = Math.min(skip, bytes.length - at)
        skip -= taken
        at += taken
        if (skip === 0 && endSkip()) ends.push(at)
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

/** Method and path of a request. @param {Buffer} request @returns {string[]} */
export function requestLineOf(request) {
  return request
    .toString('latin1', 0, Math.max(0, request.indexOf(newline)))
    .split(' ')
    .slice(0, 2)
}
