import { type Command, Option } from 'commander'
import { z } from 'zod'
import { httpUrl } from '../client/exchange.js'
import { check, type Fault } from '../contract/faults.js'
import {
  idForm,
  isDeliveryId,
  isFenceScope,
  isHostId,
  isId,
  isMessageId,
  nameForm,
  parseAttemptId,
} from '../contract/ids.js'
import type { Recipient } from '../contract/message.js'
import { type Listen, parseListen } from '../http/listen.js'
import { readSettings, type Settings } from './config.js'
import { type ExitCode, exitCodes, usageError } from './failure.js'
import { isReadable } from './files.js'
import { parseDuration, parseTime } from './times.js'

/** What a command is run with, beside its own values. */
export interface Context {
  readonly settings: Settings
  readonly json: boolean
}

/** What a command does; answers its exit code, 0 when it answers nothing. */
export type Act<Values> = (values: Values, context: Context) => Promise<ExitCode | undefined>

/**
 * An action for commander: reads the settings and checks the command's own flags and arguments against the
 * schema, by their names in camelCase. Every problem of both is reported at once.
 */
export function action<Schema extends z.ZodType>(
  schema: Schema,
  act: Act<z.output<Schema>>,
): (this: Command) => Promise<void> {
  return async function (this: Command) {
    const flags: Record<string, unknown> = this.optsWithGlobals()
    const { settings, problems } = readSettings(flags, process.env, process.cwd())
    const checked = check(schema, { ...flags, ...argumentsOf(this) })
    const wrong = checked.ok ? [] : checked.faults.map((fault) => faultOf(this, fault))
    if (!checked.ok || problems.length > 0) throw usageError([...problems, ...wrong])
    process.exitCode = (await act(checked.value, { settings, json: flags['json'] === true })) ?? exitCodes.ok
  }
}

function argumentsOf(command: Command): Record<string, unknown> {
  return Object.fromEntries(command.registeredArguments.map((each, at) => [each.name(), command.args[at]]))
}

function faultOf(command: Command, { path, message }: Fault): string {
  const name = String(path[0] ?? '')
  const option = command.options.find((each) => each.attributeName() === name)
  const label = option?.long ?? name.toUpperCase()
  return label === '' ? message : `${label}: ${message}`
}

/** An option that may be given several times, as a list. */
export function repeatable(flags: string, description: string): Option {
  return new Option(flags, `${description}; may be repeated`).argParser(
    (value: string, before: string[] | undefined) => [...(before ?? []), value],
  )
}

const text = z.string()

function parsed<Value>(parse: (given: string) => Value | undefined, problem: string) {
  return text.transform((given, context): Value => {
    const value = parse(given)
    if (value !== undefined) return value
    context.addIssue({ code: 'custom', message: `${JSON.stringify(given)} ${problem}` })
    return z.NEVER
  })
}

/** A complaint that begins with what was given. */
function shown(problem: string) {
  return { error: ({ input }: { readonly input?: unknown }) => `${JSON.stringify(input)} ${problem}` }
}

/** In a set of hubs an id begins with the name of its hub, and a colon. */
function ofAnyHub(test: (id: string) => boolean): (given: string) => boolean {
  return (given) => test(given.slice(given.indexOf(':') + 1))
}

function wholeNumber(least: number, most: number) {
  return parsed((given) => {
    const value = /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN
    return value >= least && value <= most ? value : undefined
  }, `is no whole number from ${least} to ${most}`)
}

function recipientOf(given: string): Recipient | undefined {
  const [kind, name] = [given.slice(0, given.indexOf(':')), given.slice(given.indexOf(':') + 1)]
  if (kind === 'host' && isHostId(name)) return { host: name }
  if (kind === 'session' && isId(name)) return { session: name }
  return undefined
}

function isJson(given: string): boolean {
  try {
    JSON.parse(given)
    return true
  } catch {
    return false
  }
}

function isHttpUrl(given: string): boolean {
  try {
    httpUrl(given)
    return true
  } catch {
    return false
  }
}

function listenOf(given: string): Listen | undefined {
  try {
    return parseListen(given)
  } catch {
    return undefined
  }
}

/** What flags and arguments are checked against. */
export const value = {
  text,
  sentence: text.refine(
    (given) => given !== '' && Buffer.byteLength(given) <= 1024,
    'must be 1 to 1024 bytes of text',
  ),
  id: text.refine(isId, idForm),
  host: text.refine(isHostId, nameForm),
  recipient: parsed(recipientOf, 'is no recipient: host:<host> or session:<session>'),
  fenceScope: text.refine(
    isFenceScope,
    shown('is no scope: hub, host:<host>, conversation:<id> or session:<id>'),
  ),
  messageId: text.refine(ofAnyHub(isMessageId), shown('is no message id (<ms>-<sequence>)')),
  deliveryId: text.refine(ofAnyHub(isDeliveryId), shown('is no delivery id (<message>.<n>)')),
  attemptId: text.refine(
    ofAnyHub((given) => parseAttemptId(given) !== undefined),
    shown('is no attempt id (<delivery>/<n>)'),
  ),
  wholeNumber,
  duration: parsed(parseDuration, 'is no length of time: 500ms, 30s, 5m, 2h, 1d or plain milliseconds'),
  time: parsed(
    (given) => parseTime(given),
    'is no time: RFC 3339 with an offset, Unix milliseconds, or a duration from now such as 5m',
  ),
  httpUrl: text.refine(isHttpUrl, 'must be http:// or https:// without user or password'),
  listen: parsed(listenOf, 'is no <address>:<port>'),
  readableFile: text.refine(isReadable, 'names no file that can be read'),
  json: text.refine(isJson, 'is no JSON'),
  digest: text.refine((given) => /^[0-9a-f]{64}$/.test(given), 'is no SHA-256 in lower-case hex'),
  flag: z.boolean().default(false),
}
