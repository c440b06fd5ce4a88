import { z } from 'zod'
import { HoldfastError, isHoldfastError } from './errors.js'
import { check, cut, type Fault, faultLine, kindOf, mustBe } from './faults.js'
import { checkedHubs } from './hub-set.js'
import { idForm, isHostId, isHubName, isId, nameForm } from './ids.js'

// Options of functions are refused for what is not known of them, as the configuration file is: a slip of the pen shows at
// once, and not by what goes on without the option. They are looked at and used as they were given: nothing is copied.

/** A schema for every option there is, and for no other. */
type Schemas<Options> = { readonly [Name in keyof Options]-?: z.ZodType }

/** Of options of which no other is known. */
export function optionsOf<Options>(schemas: Schemas<Options>): z.ZodType {
  return z.strictObject(schemas as Record<string, z.ZodType>)
}

/** Another argument than the options: what it must be, and what it is. */
export type Argument = readonly [schema: z.ZodType, value: unknown]

/**
 * Refuses options that are not of their form, before anything is done with them; `caller` is the function, `others` are
 * what else it takes, by their names.
 * @throws INVALID_ARGUMENT, naming every fault
 */
export function checkOptions(
  caller: string,
  schema: z.ZodType,
  options: unknown,
  others: Readonly<Record<string, Argument>> = {},
): void {
  const faults = [...faultsIn(schema, options), ...Object.entries(others).flatMap(faultsOf)]
  if (faults.length === 0) return
  const next = `correct it and call ${caller} again; nothing was done`
  throw new HoldfastError('INVALID_ARGUMENT', `${caller}: ${faultLine(faults)}`, { next })
}

function faultsIn(schema: z.ZodType, options: unknown): readonly Fault[] {
  if (!isObject(options)) return [{ path: ['options'], message: mustBe('an object', options) }]
  const checked = check(schema, options)
  return checked.ok ? [] : checked.faults
}

function faultsOf([argument, [schema, value]]: readonly [string, Argument]): readonly Fault[] {
  const checked = check(schema, value)
  return checked.ok ? [] : checked.faults.map(({ path, message }) => ({ path: [argument, ...path], message }))
}

/** A rule about several options, asked whatever else is wrong with them. Undefined: they go together. */
export function together<Options>(rule: (options: Partial<Options>) => string | undefined) {
  return z.superRefine<unknown>(
    (options, context) => {
      const message = rule(options as Partial<Options>)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    },
    { when: () => true },
  )
}

// Values

/** A value that passes a test of its own; `form` says of what form it must be. */
export function valueThat(form: string, test: (value: unknown) => boolean) {
  return z.custom(test, { error: ({ input }) => mustBe(form, input) })
}

/** An object that does these things: a hub, an executor, a logger. */
export function objectWith(form: string, methods: readonly string[]) {
  return valueThat(form, (value) => {
    return (
      typeof value === 'object' && value !== null && methods.every((method) => isFunctionOf(value, method))
    )
  })
}

function isFunctionOf(value: object, method: string): boolean {
  return typeof Reflect.get(value, method) === 'function'
}

/** Timers take no more milliseconds than this. */
const longestTimer = 2_147_483_647

/** A whole number, both ends included. */
export function whole(least: number, most = longestTimer) {
  return valueThat(`a whole number from ${least} to ${most}`, (value) => {
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
  })
}

/** A string with something in it; it is not repeated. */
export function text(form: string) {
  return z.string().min(1, { error: `must be ${form}, not an empty string` })
}

/** A name that the caller chose, and no secret: a wrong one is repeated. */
function nameThat(form: string, test: (value: string) => boolean) {
  return z.string().refine(test, {
    error: ({ input }) => `${form}, not ${JSON.stringify(cut(String(input)))}`,
  })
}

/** Names of the record. */
export const name = {
  host: nameThat(nameForm, isHostId),
  hub: nameThat(nameForm, isHubName),
  id: nameThat(idForm, isId),
}

/** The names of a set of hubs. */
export const hubSet = z.array(z.string()).superRefine((names, context) => {
  try {
    checkedHubs(names)
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    context.addIssue({ code: 'custom', message: error.message.slice(error.code.length + 1) })
  }
})

const isObject = (value: unknown) => kindOf(value) === 'an object'
const pem = valueThat('PEM text', (value) => typeof value === 'string' || value instanceof Uint8Array)

/** Options that several functions have. */
export const option = {
  flag: z.boolean().optional(),
  /** A number of things, or of milliseconds. */
  count: whole(1).optional(),
  bytes: whole(0, Number.MAX_SAFE_INTEGER).optional(),
  function: valueThat('a function', (value) => typeof value === 'function'),
  /** Names with texts, of which another asks what they are. */
  names: valueThat('an object', isObject).optional(),
  log: objectWith('a logger, which has debug, info, warn and error', [
    'debug',
    'info',
    'warn',
    'error',
  ]).optional(),
  /** Whether it is a URL is said where it is read. */
  url: valueThat('a URL', (value) => typeof value === 'string' || value instanceof URL),
  tls: z
    .strictObject({
      ca: pem.optional(),
      cert: pem.optional(),
      key: pem.optional(),
      servername: z.string().optional(),
    })
    .optional(),
}

/** Where a record is. The text is not repeated: it may hold a password. */
export const redisAddress = z.union([z.string(), z.strictObject({ url: z.string(), tls: option.tls })], {
  error: ({ input }) => mustBe('a redis:// URL, or { url, tls }', input),
})

/** A hub over HTTP, and who speaks to it. */
export const hubAddress = { url: z.string(), token: z.string().optional(), tls: option.tls }
