import { z } from 'zod'

// What is wrong with a value that a schema refuses, in words. Every surface says it by these: calls and options in a
// program, requests over HTTP, flags and the configuration file. Texts and payloads are never repeated: of a value its
// kind is named, of an object the names of its members, and only a number, a truth value or what was to be a time itself.

/** One thing that is wrong, and where. */
export interface Fault {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

/** A value as its schema made it, or all that is wrong with what was given. */
export type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly faults: readonly Fault[] }

/** Checks a value by its schema. Messages that the schema brings along stand as they are. */
export function check<Schema extends z.ZodType>(schema: Schema, value: unknown): Checked<z.output<Schema>> {
  const result = schema.safeParse(value, { error: wordingOf })
  return result.success
    ? { ok: true, value: result.data }
    : { ok: false, faults: result.error.issues.flatMap(faultsOf) }
}

/** All faults in one line; `whole` names the value itself, where it needs a name. */
export function faultLine(faults: readonly Fault[], whole = ''): string {
  const lines = faults.map(({ path, message }) => {
    const place = path.map(String).join('.') || whole
    return place === '' ? message : `${place}: ${message}`
  })
  return lines.join('; ')
}

/** What a value must be, and what it is instead. */
export function mustBe(form: string, value: unknown): string {
  return value === undefined ? 'is required' : `must be ${form}, not ${given(value)}`
}

/** The kind of a value: never its text. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'an invalid Date' : 'a Date'
  if (value instanceof Uint8Array) return 'bytes'
  if (value instanceof Promise) return 'a promise'
  if (value === '') return 'an empty string'
  return kinds[typeof value]
}

const kinds = {
  string: 'a string',
  number: 'a number',
  bigint: 'a bigint',
  boolean: 'true or false',
  symbol: 'a symbol',
  undefined: 'nothing',
  object: 'an object',
  function: 'a function',
}

/** What was given instead of something else. */
function given(value: unknown): string {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : kindOf(value)
}

const longestTime = 32

/** Refuses what is no time; `forms` are those that are taken. Short text is repeated: it was meant as a time. */
export function timeError(forms: string) {
  return ({ input }: { readonly input?: unknown }): string => {
    const isShort = typeof input === 'string' && /^[\x20-\x7e]+$/.test(input) && input.length <= longestTime
    return isShort ? `must be ${forms}, not ${JSON.stringify(input)}` : mustBe(forms, input)
  }
}

// Issues of schemas

type Issue = z.core.$ZodIssue
type RawIssue = z.core.$ZodRawIssue

/**
 * Of a value with several forms: what is wrong by the one form that it was meant to have, where that shows. It is the only
 * one of whose members there is something to say, or the only one of which a single thing is wrong.
 */
function faultsOf(issue: Issue): readonly Fault[] {
  if (issue.code !== 'invalid_union') return [issue]
  const meant = onlyOne(issue.errors.filter(isAboutMembers)) ?? onlyOne(issue.errors.filter(isSingle))
  if (meant === undefined) return [issue]
  return meant.flatMap(faultsOf).map(({ path, message }) => ({ path: [...issue.path, ...path], message }))
}

function isAboutMembers(issues: readonly Issue[]): boolean {
  return issues.every(({ code, path }) => path.length > 0 || code === 'unrecognized_keys')
}

function isSingle(issues: readonly Issue[]): boolean {
  return issues.length === 1
}

function onlyOne<Item>(items: readonly Item[]): Item | undefined {
  return items.length === 1 ? items[0] : undefined
}

function wordingOf(issue: RawIssue): string {
  const { input } = issue
  switch (issue.code) {
    case 'invalid_type':
      return mustBe(forms[issue.expected] ?? issue.expected, input)
    case 'invalid_value':
      return oneOf(issue.values, input)
    case 'invalid_union':
      return issue.note === undefined ? noneOf(issue) : noSuchKind(issue)
    case 'unrecognized_keys':
      return unknownMembers(issue.keys, knownOf(issue.inst))
    case 'too_small':
      return bound(issue.inclusive === false ? 'more than' : 'at least', issue.minimum, input)
    case 'too_big':
      return bound(issue.inclusive === false ? 'less than' : 'at most', issue.maximum, input)
    case 'invalid_format':
      return issue.format === 'regex'
        ? `must match ${String(issue['pattern'])}`
        : `must be ${issue.format}, and is not`
    default:
      return input === undefined ? 'is required' : `is not of its form: ${kindOf(input)}`
  }
}

const forms: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  tuple: 'a list',
  date: 'a Date',
}

function oneOf(values: readonly unknown[], input: unknown): string {
  const words = values.map(String).join(', ')
  const possible = values.length === 1 ? words : `one of ${words}`
  if (input === undefined) return `is required: ${possible}`
  return typeof input === 'string' ? `must be ${possible}` : mustBe(possible, input)
}

/** The forms that there are, and what came: of an object the names of its members. */
function noneOf({ inst, input }: RawIssue): string {
  const options = inst instanceof z.ZodUnion ? inst.options.map(formOf) : []
  if (options.length === 0) return mustBe('of another form', input)
  const possible = [...new Set(options)].join(' or ')
  const isPlain = kindOf(input) === 'an object'
  return isPlain
    ? `must be ${possible}, not ${membersOf(Object.keys(input as object))}`
    : mustBe(possible, input)
}

function formOf(schema: z.core.$ZodType): string {
  if (schema instanceof z.ZodObject) return membersOf(Object.keys(schema.shape))
  if (schema instanceof z.ZodLiteral) return [...schema.values].map(String).join(' or ')
  return forms[schema._zod.def.type] ?? 'of another form'
}

function membersOf(names: readonly string[]): string {
  return names.length === 0 ? '{}' : `{ ${listOf(names.map(nameOf))} }`
}

/** Objects of several kinds, which one of their members tells. */
function noSuchKind(issue: RawIssue): string {
  const { input } = issue
  const name = String(issue['discriminator'])
  const told = typeof input === 'object' && input !== null ? Reflect.get(input, name) : undefined
  return oneOf((issue['options'] as readonly unknown[] | undefined) ?? [], told)
}

function unknownMembers(names: readonly string[], known: readonly string[]): string {
  const list = listOf(names.map((name) => JSON.stringify(cut(name))))
  const all = known.length === 0 ? 'none is known here' : `known: ${known.join(', ')}`
  return `unknown ${names.length === 1 ? 'member' : 'members'} ${list} (${all})`
}

function knownOf(schema: unknown): readonly string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape)
  const names: unknown = schema instanceof z.ZodRecord ? schema.keyType : undefined
  return names instanceof z.ZodEnum ? names.options.map(String) : []
}

const namesAtMost = 5
const nameAtMost = 60

function listOf(names: readonly string[]): string {
  const more = names.length - namesAtMost
  return more <= 0 ? names.join(', ') : `${names.slice(0, namesAtMost).join(', ')} and ${more} more`
}

function nameOf(name: string): string {
  return /^[\w-]{1,60}$/.test(name) ? name : JSON.stringify(cut(name))
}

/** A name, short enough for a line of text. */
export function cut(name: string): string {
  return name.length <= nameAtMost
    ? name
    : `${name.slice(0, nameAtMost - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

function bound(how: string, limit: number | bigint, input: unknown): string {
  if (typeof input === 'string') return `must be ${how} ${limit} characters long, not ${input.length}`
  if (Array.isArray(input)) {
    return `must have ${how} ${limit} ${limit === 1 ? 'element' : 'elements'}, not ${input.length}`
  }
  return mustBe(`${how} ${limit}`, input)
}
