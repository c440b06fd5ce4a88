// @ts-check
// A proxy on loopback that knows where messages begin and end, and does to them what faults ask for.
import { connect, createServer } from 'node:net'

/** @typedef {import('node:net').Socket} Socket */
/** @typedef {import('./resp-frames.mjs').FrameScanner} FrameScanner */

/** A whole request: its first words (a command and its first arguments, or method and path), and its bytes. @typedef {{ words: string[], bytes: Buffer }} Request */
/** A part of an answer, or all of it. @typedef {{ bytes: Buffer, starts: boolean, ends: boolean }} Piece */

/**
 * What becomes of a request. `cut`: a share of its bytes gets through, then both sides are cut. `cut-reply`: it is
 * served, a share of its answer gets through, then the same. `duplicate`: it is sent twice and the second answer
 * swallowed; the second on the same connection right behind it, or `afterMs` later on one of its own.
 * @typedef {{ kind: 'cut' | 'cut-reply', share: number } | { kind: 'duplicate', afterMs?: number }} Verdict
 */

/**
 * What a fault does to the traffic while it is in force.
 * @typedef {object} Trouble
 * @property {(request: Request) => Verdict | undefined} [onRequest] the first fault that answers decides
 * @property {() => number} [delayMs] for every piece in either direction; their order stays
 * @property {boolean} [isDark] nothing passes in either direction; sockets stay open, new ones are accepted
 */

/**
 * @typedef {object} Protocol
 * @property {string} scheme
 * @property {() => FrameScanner} requests
 * @property {(answered: () => Request | undefined) => FrameScanner} replies
 * @property {(request: Buffer) => string[]} words
 * @property {boolean} duplicatesInline whether a second copy may follow on the same connection
 */

/**
 * @typedef {object} Relay
 * @property {number} port
 * @property {string} url
 * @property {(trouble: Trouble) => () => void} add puts a trouble in force; what it returns ends it and lets go what it held
 * @property {(pick: () => boolean) => number} cut cuts connections that are picked, at once; answers how many
 * @property {(pick: () => boolean) => () => void} halfOpen the server's side of those picked is closed, the client's stays
 *   open and is heard no more; what it returns lets it find out with its next byte
 * @property {() => number} connections
 * @property {() => Promise<void>} close
 */

/**
 * @typedef {object} Pair
 * @property {() => void} cut
 * @property {() => void} wake
 * @property {() => () => void} halfOpen
 */

/** @param {Protocol} protocol @param {number | (() => number)} target a port, asked for at every connection @param {{ host?: string }} [options] @returns {Promise<Relay>} */
export async function startProxy(protocol, target, { host = '127.0.0.1' } = {}) {
  /** @type {Set<Pair>} */
  const pairs = new Set()
  /** @type {Set<Trouble>} */
  const troubles = new Set()
  const isDark = () => [...troubles].some((trouble) => trouble.isDark === true)
  const delayMs = () => Math.max(0, ...[...troubles].map((trouble) => trouble.delayMs?.() ?? 0))
  /** @param {Request} request @returns {Verdict | undefined} */
  const judge = (request) => {
    for (const trouble of troubles) {
      const verdict = trouble.onRequest?.(request)
      if (verdict !== undefined) return verdict
    }
    return undefined
  }

  const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const targetPort = typeof target === 'function' ? target() : target
    const pair = joinPair(protocol, client, targetPort, { isDark, delayMs, judge }, () => pairs.delete(pair))
    pairs.add(pair)
  })
  const port = await listen(listener, host)
  // It keeps nobody alive.
  listener.unref()

  return {
    port,
    url: `${protocol.scheme}://${host}:${port}`,
    add: (trouble) => {
      troubles.add(trouble)
      return () => {
        troubles.delete(trouble)
        for (const pair of pairs) pair.wake()
      }
    },
    cut: (pick) => {
      const picked = [...pairs].filter(() => pick())
      for (const pair of picked) pair.cut()
      return picked.length
    },
    halfOpen: (pick) => {
      const ends = [...pairs].filter(() => pick()).map((pair) => pair.halfOpen())
      return () => {
        for (const end of ends) end()
      }
    },
    connections: () => pairs.size,
    close: () =>
      new Promise((resolve) => {
        listener.close(() => resolve())
        for (const pair of [...pairs]) pair.cut()
      }),
  }
}

/** @param {import('node:net').Server} listener @param {string} host @returns {Promise<number>} */
function listen(listener, host) {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(0, host, () => {
      const address = listener.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/**
 * @param {Protocol} protocol @param {Socket} client @param {number} targetPort
 * @param {{ isDark: () => boolean, delayMs: () => number, judge: (request: Request) => Verdict | undefined }} rules
 * @param {() => void} onGone @returns {Pair}
 */
function joinPair(protocol, client, targetPort, rules, onGone) {
  const server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
  /** Answers to come, in their order. @type {{ request: Request, isSwallowed: boolean, share?: number }[]} */
  const awaited = []
  const [up, down] = [createLane(rules), createLane(rules)]
  const requests = wholeMessages(protocol.requests())
  const replies = pieces(protocol.replies(() => awaited[0]?.request))
  /** The client is heard no more: `deaf` until it may find out, `over` from then on. @type {'no' | 'deaf' | 'over'} */
  let lost = 'no'
  let isCut = false

  function cut() {
    isCut = true
    up.close()
    down.close()
    client.destroy()
    server.destroy()
  }

  /** @param {Buffer} bytes */
  function onRequests(bytes) {
    for (const message of requests(bytes)) {
      // Those behind a request that was cut; but not those of a client that has given up.
      if (isCut) return
      const request = { words: protocol.words(message), bytes: message }
      send(request, rules.judge(request))
    }
  }

  /** @param {Request} request @param {Verdict | undefined} verdict */
  function send(request, verdict) {
    if (verdict?.kind === 'cut') {
      isCut = true
      const part = request.bytes.subarray(0, Math.floor(request.bytes.length * verdict.share))
      client.destroy()
      // What is written gets through before the end does.
      server.end(part)
      return
    }
    const share = verdict?.kind === 'cut-reply' ? verdict.share : undefined
    awaited.push({ request, isSwallowed: false, ...(share === undefined ? {} : { share }) })
    server.write(request.bytes)
    if (verdict?.kind === 'duplicate') sendAgain(request, verdict.afterMs)
  }

  /** @param {Request} request @param {number | undefined} afterMs */
  function sendAgain(request, afterMs) {
    if (afterMs === undefined && protocol.duplicatesInline) {
      awaited.push({ request, isSwallowed: true })
      server.write(request.bytes)
    } else setTimeout(() => sendAlone(protocol, targetPort, request), afterMs ?? 0).unref()
  }

  /** @param {Buffer} bytes */
  function onReplies(bytes) {
    for (const piece of replies(bytes)) {
      const [answer] = awaited
      if (answer?.share !== undefined) {
        server.destroy()
        client.end(piece.bytes.subarray(0, Math.floor(piece.bytes.length * answer.share)), () =>
          client.destroy(),
        )
        return
      }
      if (answer?.isSwallowed !== true) client.write(piece.bytes)
      if (piece.ends) awaited.shift()
    }
  }

  client.on('data', (bytes) => {
    if (lost === 'no') up.push(() => onRequests(bytes))
    else if (lost === 'over') client.resetAndDestroy()
  })
  server.on('data', (bytes) => down.push(() => onReplies(bytes)))
  // An end is held back as well, and what was sent before it arrives first: also what a client sent that has given up.
  const endClient = () => {
    if (lost === 'no') client.end(() => client.destroy())
  }
  const leave = () => {
    if (client.destroyed && server.destroyed) onGone()
  }
  client.on('end', () => up.push(() => server.end()))
  client.on('error', () => undefined)
  client.on('close', () => {
    up.push(() => server.end())
    leave()
  })
  server.on('end', () => down.push(() => lost === 'no' && client.end()))
  server.on('error', () => undefined)
  server.on('close', () => {
    down.push(endClient)
    leave()
  })

  return {
    cut,
    wake: () => {
      up.pump()
      down.pump()
    },
    halfOpen: () => {
      lost = 'deaf'
      server.destroy()
      let wasHeard = false
      client.once('data', () => {
        wasHeard = true
      })
      return () => {
        lost = 'over'
        if (wasHeard) client.resetAndDestroy()
      }
    },
  }
}

/** A copy that arrives by another way, and whose answer nobody reads. @param {Protocol} protocol @param {number} port @param {Request} request */
function sendAlone(protocol, port, request) {
  const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(request.bytes))
  const scan = protocol.replies(() => request)
  const limit = setTimeout(() => socket.destroy(), strayMs).unref()
  socket.on('data', (bytes) => {
    if (scan(bytes).length > 0) socket.destroy()
  })
  socket.on('error', () => undefined)
  socket.on('close', () => clearTimeout(limit))
}

/** How long the second answer may take. */
const strayMs = 30_000

/** One direction of a connection: what goes through it is delayed and held back, and keeps its order. @param {{ isDark: () => boolean, delayMs: () => number }} rules */
function createLane({ isDark, delayMs }) {
  /** @type {{ act: () => void, dueAt: number }[]} */
  let held = []
  let lastDueAt = 0
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  function pump() {
    clearTimeout(timer)
    timer = undefined
    if (isDark()) return
    const now = performance.now()
    while ((held[0]?.dueAt ?? Number.POSITIVE_INFINITY) <= now) held.shift()?.act()
    const [next] = held
    if (next !== undefined) timer = setTimeout(pump, next.dueAt - now + 1)
  }

  return {
    /** @param {() => void} act */
    push: (act) => {
      lastDueAt = Math.max(lastDueAt, performance.now() + delayMs())
      held.push({ act, dueAt: lastDueAt })
      if (timer === undefined) pump()
    },
    pump,
    close: () => {
      clearTimeout(timer)
      held = []
    },
  }
}

/** Cuts a stream into parts of messages; none holds bytes of two. @param {FrameScanner} scan @returns {(bytes: Buffer) => Piece[]} */
export function pieces(scan) {
  let starts = true
  return (bytes) => {
    const found = []
    let from = 0
    for (const end of scan(bytes)) {
      found.push({ bytes: bytes.subarray(from, end), starts, ends: true })
      starts = true
      from = end
    }
    if (from < bytes.length) {
      found.push({ bytes: bytes.subarray(from), starts, ends: false })
      starts = false
    }
    return found
  }
}

/** The same, each message in one. @param {FrameScanner} scan @returns {(bytes: Buffer) => Buffer[]} */
export function wholeMessages(scan) {
  const split = pieces(scan)
  /** @type {Buffer[]} */
  let parts = []
  return (bytes) => {
    const whole = []
    for (const piece of split(bytes)) {
      parts.push(piece.bytes)
      if (!piece.ends) continue
      whole.push(parts.length === 1 ? piece.bytes : Buffer.concat(parts))
      parts = []
    }
    return whole
  }
}
