import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { isHoldfastError } from '../contract/errors.js'
import { isHubName } from '../contract/ids.js'
import { redactUrl } from '../record/connections.js'

/** What every command is told about where it works. Flags > environment > `holdfast.config.json`. */
export interface Settings {
  /** Absent: the embedded server in the data folder. */
  readonly redis?: string
  readonly hub: string
  readonly data: string
  /** Who an operator's act is recorded under; the OS user when nothing names one. */
  readonly actor: string
}

/** Settings, and everything that is wrong with what was given for them. */
export interface ReadSettings {
  readonly settings: Settings
  readonly problems: readonly string[]
}

export const configFile = 'holdfast.config.json'
export const defaultHub = 'hf'
export const defaultData = '.holdfast'

const members = {
  redis: z.string().superRefine((url, context) => {
    const problem = problemOfUrl(url)
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem })
  }),
  hub: z.string().refine(isHubName, 'must match [a-z0-9._-], 1 to 63 long, alphanumeric at both ends'),
  data: z.string().min(1, 'names no folder'),
  actor: z.string().refine(isActor, 'must be 1 to 1024 bytes of text'),
}
type Member = keyof typeof members

const fileSchema = z.strictObject(members).partial()
type FileMembers = z.infer<typeof fileSchema>

const variables: Readonly<Record<Member, string>> = {
  redis: 'HOLDFAST_REDIS',
  hub: 'HOLDFAST_HUB',
  data: 'HOLDFAST_DATA',
  actor: 'HOLDFAST_ACTOR',
}

/** Reads the settings; every problem is collected, none thrown. An empty variable counts as absent. */
export function readSettings(
  flags: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): ReadSettings {
  const file = readConfigFile(folder)
  const problems = [...file.problems]

  function pick(member: Member): string | undefined {
    const flag = flags[member]
    const given = typeof flag === 'string' ? flag : env[variables[member]] || undefined
    if (given === undefined) return file.members[member]
    const checked = members[member].safeParse(given)
    if (checked.success) return checked.data
    const source = typeof flag === 'string' ? `--${member}` : variables[member]
    for (const issue of checked.error.issues) problems.push(`${source}: ${issue.message}`)
    return undefined
  }

  const redis = pick('redis')
  const settings = {
    ...(redis === undefined ? {} : { redis }),
    hub: pick('hub') ?? defaultHub,
    data: pick('data') ?? defaultData,
    actor: pick('actor') ?? osUser(),
  }
  return { settings, problems }
}

function readConfigFile(folder: string): { members: FileMembers; problems: string[] } {
  const text = readIfThere(join(folder, configFile))
  if (typeof text !== 'string') return { members: {}, problems: text }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { members: {}, problems: [`${configFile}: is no JSON (${messageOf(error)})`] }
  }
  const parsed = fileSchema.safeParse(value)
  if (parsed.success) return { members: parsed.data, problems: [] }
  return { members: {}, problems: parsed.error.issues.flatMap(describeIssue) }
}

/** The text, or the problems with reading it: none when there is no such file. */
function readIfThere(path: string): string | string[] {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    return [`${configFile}: cannot be read (${messageOf(error)})`]
  }
}

function describeIssue(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${configFile}: unknown member ${JSON.stringify(key)}`)
  }
  const place = issue.path.length === 0 ? '' : `${issue.path.join('.')}: `
  return [`${configFile}: ${place}${issue.message}`]
}

function problemOfUrl(url: string): string | undefined {
  try {
    redactUrl(url)
    return undefined
  } catch (error) {
    return isHoldfastError(error) ? error.message.slice(error.code.length + 1) : messageOf(error)
  }
}

function isActor(text: string): boolean {
  const bytes = Buffer.byteLength(text)
  return bytes >= 1 && bytes <= 1024
}

/** The name of the user this process runs as. */
export function osUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid-${process.getuid?.() ?? 'unknown'}`
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
