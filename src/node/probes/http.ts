import { z } from 'zod'
import {
  checkHeaders,
  ExchangeFailure,
  type ExchangeReply,
  type Exchanger,
  type ExchangerTls,
  httpUrl,
  openExchanger,
} from '../../client/exchange.js'
import { parseJsonSource } from '../../contract/json-source.js'
import { checkOptions, option, optionsOf } from '../../contract/options.js'
import { type Outcome, printableCode } from '../../contract/outcomes.js'
import type { Attempt, Prober } from '../executor.js'
import { attemptHeaders, refuseOurHeaders } from '../executors/attempt-headers.js'
import { notExecuted, unknown } from './function.js'

/** Whom {@link httpProbe} asks. */
export interface HttpProbeOptions {
  /** Absolute `http:` or `https:` URL, without userinfo. */
  readonly url: string | URL
  /** Sent along, for instance authorization. */
  readonly headers?: Readonly<Record<string, string>>
  /** For `https:`; the authorities that Node trusts when absent. */
  readonly tls?: ExchangerTls
}

const form = optionsOf<HttpProbeOptions>({ url: option.url, headers: option.names, tls: option.tls })

const maxReplyBytes = 1 << 20
/** The attempt's signal ends it earlier. */
const longestMs = 300_000

/** What a target answers: the four cases of a probe. */
const answerShape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('result') }),
  z.object({ kind: z.literal('terminal'), errorCode: z.string().min(1).max(255) }),
  z.object({ kind: z.literal('not_executed') }),
  z.object({ kind: z.literal('unknown') }),
])

/**
 * Asks by an HTTP POST with the headers of a forwarded attempt and `Holdfast-Probe: 1`, the payload as its body. The
 * target answers 200 with JSON: `{"kind":"result","result":…}`, `{"kind":"terminal","errorCode":"…","errorJson":…}`,
 * `{"kind":"not_executed"}` (it has not executed and will not) or `{"kind":"unknown"}`. Any other answer, or
 * none, tells nothing.
 * @throws HoldfastError INVALID_ARGUMENT for options that cannot be used
 */
export function httpProbe(options: HttpProbeOptions): Prober {
  checkOptions('httpProbe', form, options)
  const { url, headers = {}, tls } = options
  const target = httpUrl(url)
  checkHeaders(headers)
  refuseOurHeaders(headers)
  const exchanger = openExchanger({ baseUrl: target.origin, keepAliveMs: 0, ...(tls && { tls }) })
  const path = target.pathname + target.search
  return { ask: (attempt) => ask(exchanger, path, headers, attempt) }
}

async function ask(
  exchanger: Exchanger,
  path: string,
  headers: Readonly<Record<string, string>>,
  attempt: Attempt,
): Promise<Outcome> {
  try {
    const reply = await exchanger.exchange({
      method: 'POST',
      path,
      headers: { ...headers, ...attemptHeaders(attempt), 'holdfast-probe': '1' },
      body: attempt.payload,
      signal: attempt.signal,
      deadlineMs: longestMs,
      maxReplyBytes,
    })
    return reply.status === 200 ? meaningOf(reply) : unknown('probe_failed', { status: reply.status })
  } catch (error) {
    const why = error instanceof ExchangeFailure ? error.kind : 'unreadable'
    const message = error instanceof Error ? error.message.slice(0, 1000) : String(error)
    return unknown('probe_failed', { why, message })
  }
}

/** The result and the particulars are the target's own JSON text. */
function meaningOf(reply: ExchangeReply): Outcome {
  const source = parseJsonSource(reply.body)
  const textOf = (member: string) => source.textAt([member])?.toString('utf8')
  const answer = answerShape.safeParse(source.value)
  if (!answer.success) return unknown('probe_answer', { why: 'the answer is none of the four' })
  switch (answer.data.kind) {
    case 'result':
      return { kind: 'result', result: textOf('result') ?? 'null' }
    case 'terminal': {
      const errorJson = textOf('errorJson')
      const { kind, errorCode } = answer.data
      return { kind, errorCode: printableCode(errorCode), ...(errorJson === undefined ? {} : { errorJson }) }
    }
    case 'not_executed':
      return notExecuted
    case 'unknown':
      return unknown('probe_unknown')
  }
}
