// @ts-check
// Connections are cut at random moments: between two messages, within a request, and within an answer.
import { waysFault } from '../proxy/via.mjs'

const everyMs = { least: 20, most: 300 }
/** How often a connection is cut at such a moment, and how often a message is cut while it is sent, of 1. */
const shares = { connection: 0.3, request: 0.02, reply: 0.02 }

export const fault = waysFault({ name: 'net-cut', longestMs: 3000 }, (ways, random) => {
  /** @type {NodeJS.Timeout} */
  let timer
  const cutSome = () => {
    for (const way of ways) way.cut(() => random.chance(shares.connection))
    timer = setTimeout(cutSome, random.int(everyMs.least, everyMs.most))
  }
  cutSome()
  const ends = ways.map((way) =>
    way.add({
      onRequest: () => {
        if (random.chance(shares.request)) return { kind: 'cut', share: random.next() }
        if (random.chance(shares.reply)) return { kind: 'cut-reply', share: random.next() }
        return undefined
      },
    }),
  )
  return () => {
    clearTimeout(timer)
    for (const end of ends) end()
  }
})
