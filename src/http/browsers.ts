import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { HoldfastError } from '../contract/errors.js'

/** The cookie that holds a token. It has no path: a browser sends it to the interface of its hub alone. */
export const cookieName = 'holdfast'

/** A header that no form and no foreign page can send without asking first, which is never granted here. */
const pageHeader = 'holdfast-page'
const fetchSite = 'sec-fetch-site'
/** The token is percent-encoded where a cookie could not hold it. */
const cookieValue = /^[\w!#$%&'()*+\-./:<=>?@[\]^`{|}~]{1,1536}$/

/** The token in a request's cookie. @throws UNAUTHENTICATED where it is no token, or there are two */
export function cookieOf({ headers: { cookie } }: IncomingMessage): string | undefined {
  if (cookie === undefined) return undefined
  const own = cookie.split(';').flatMap((pair) => {
    const [name = '', ...value] = pair.split('=')
    return name.trim() === cookieName ? [value.join('=').trim()] : []
  })
  const [value, second] = own
  if (value === undefined) return undefined
  if (second !== undefined) {
    throw new HoldfastError('UNAUTHENTICATED', `two cookies ${cookieName}: one of them is not of this hub`)
  }
  const token = cookieValue.test(value) ? decoded(value) : undefined
  if (token === undefined) throw new HoldfastError('UNAUTHENTICATED', `the cookie ${cookieName} is no token`)
  return token
}

/**
 * Refuses what a page of another origin has a browser send. It is asked for wherever a browser would say by itself
 * who its user is: what a program says on purpose is not judged by it.
 * @throws UNAUTHENTICATED
 */
export function requireOwnOrigin({ headers }: IncomingMessage): void {
  const site = headers[fetchSite]
  if (site !== undefined && site !== 'same-origin' && site !== 'none') {
    throw new HoldfastError('UNAUTHENTICATED', 'the request is of a web page of another origin')
  }
  const { origin, host = '' } = headers
  if (origin !== undefined && !isOriginOf(origin, host)) {
    throw new HoldfastError('UNAUTHENTICATED', 'Origin is not this hub, by the header Host')
  }
}

/** What changes something is asked for by the page itself. @throws UNAUTHENTICATED */
export function requireOwnPage({ method, headers }: IncomingMessage): void {
  if (method === 'GET' || method === 'HEAD' || headers[pageHeader] === '1') return
  throw new HoldfastError(
    'UNAUTHENTICATED',
    `the cookie alone changes nothing: the page of this hub sends Holdfast-Page: 1`,
  )
}

/** Whether the browser's user sees HTTPS: this server's own, or that of a proxy before it. */
export function isSecure({ socket, headers: { origin = '' } }: IncomingMessage): boolean {
  return (socket as Partial<TLSSocket>).encrypted === true || origin.startsWith('https:')
}

/** The port that goes without saying is left out on both sides, by the scheme of the origin. */
function isOriginOf(origin: string, host: string): boolean {
  if (!/^https?:\/\//.test(origin) || !/^[\w.\-:[\]]+$/.test(host) || !URL.canParse(origin)) return false
  const url = new URL(origin)
  const asked = `${url.protocol}//${host}`
  return url.origin === origin && URL.canParse(asked) && new URL(asked).host === url.host
}

function decoded(text: string): string | undefined {
  try {
    const token = decodeURIComponent(text)
    return /^[\x21-\x7e]{1,512}$/.test(token) ? token : undefined
  } catch {
    return undefined
  }
}
