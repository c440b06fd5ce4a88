import { connect, type Socket } from 'node:net'
import { until } from './until.js'

/** One answer, as it stood on the wire. */
export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The body as JSON; undefined where it is none. */
  readonly json: Readonly<Record<string, unknown>> | undefined
}

/** A connection on which a test writes what it likes. */
export interface RawConnection {
  readonly socket: Socket
  /** Bytes, or text of one byte a character. */
  write(bytes: string | Buffer): void
  /** The whole answers that came so far. */
  answers(): readonly RawAnswer[]
  /** Resolves with the answers when there are so many. */
  answered(count: number): Promise<readonly RawAnswer[]>
  /** Resolves with the answers when the connection is over, whoever ended it. */
  over(): Promise<readonly RawAnswer[]>
  readonly isOver: boolean
}

export function openRaw(port: number, options: { readonly reading?: boolean } = {}): RawConnection {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  let isOver = false
  if (options.reading !== false) socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.on('error', () => undefined) // a server may reset what it does not like
  socket.on('end', () => socket.end())
  socket.on('close', () => {
    isOver = true
  })
  const answers = () => answersIn(Buffer.concat(chunks).toString('latin1'))
  return {
    socket,
    write: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    answers,
    answered: async (count) => {
      const enough = () => {
        const found = answers()
        if (found.length >= count) return found
        if (isOver) throw new Error(`over after ${found.length} answers`)
        return undefined
      }
      return await until(enough, { timeoutMs: 30_000, what: `${count} answers` })
    },
    over: async () => {
      await until(() => isOver, { timeoutMs: 30_000, what: 'the end of a connection' })
      return answers()
    },
    get isOver() {
      return isOver
    },
  }
}

/** Writes, and answers what came until the server closed the connection. */
export async function exchangeRaw(port: number, bytes: string | Buffer): Promise<readonly RawAnswer[]> {
  const connection = openRaw(port)
  connection.write(bytes)
  return await connection.over()
}

/** A request as text. A body gets its Content-Length. */
export function requestText(line: string, headers: Readonly<Record<string, string>> = {}, body = ''): string {
  const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body, 'latin1')) }
  const lines = Object.entries({ host: '127.0.0.1', ...length, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

function answersIn(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = text
  for (;;) {
    const end = rest.indexOf('\r\n\r\n')
    const [statusLine = '', ...lines] = rest.slice(0, Math.max(0, end)).split('\r\n')
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine) ?? []
    if (status === undefined) return answers
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 2),
      ]),
    )
    const after = rest.slice(end + 4)
    const length = bodyLength(Number(status), headers, after)
    if (length === undefined || after.length < length) return answers
    const body = after.slice(0, length)
    rest = after.slice(length)
    if (status !== '100') answers.push({ status: Number(status), headers, body, json: jsonOf(headers, body) })
  }
}

/** How much of the text is the body, with the marks of its chunks; undefined while that cannot be told. */
function bodyLength(status: number, headers: Record<string, string>, text: string): number | undefined {
  if (status < 200 || status === 204) return 0
  if (headers['transfer-encoding'] !== 'chunked') return Number(headers['content-length'] ?? 0)
  const end = /(?:^|\r\n)0\r\n\r\n/.exec(text)
  return end === null ? undefined : end.index + end[0].length
}

function jsonOf(headers: Record<string, string>, body: string): RawAnswer['json'] {
  if (!/^application\/(problem\+)?json/.test(headers['content-type'] ?? '')) return undefined
  return body === '' ? undefined : (JSON.parse(body) as Record<string, unknown>)
}
