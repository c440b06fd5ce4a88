import { readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { httpUrl } from '../client/exchange.js'
import { isHoldfastError } from '../contract/errors.js'
import { check, type Fault } from '../contract/faults.js'
import { hubNames } from '../contract/hub-set.js'
import { isHubName, nameForm } from '../contract/ids.js'
import type { RedisAddress } from '../contract/redis-address.js'
import { redactUrl } from '../record/address.js'
import { isReadable, textOf } from './files.js'

/** What every command is told about where it works. Flags > environment > `holdfast.config.json`. */
export interface Settings {
  /** Absent: the embedded server in the data folder. */
  readonly redis?: RedisAddress
  /** Work through a hub over HTTP instead of on the record. */
  readonly http?: HttpSettings
  /** The hub, or the first one of the set. */
  readonly hub: string
  /** Every hub of the set, where one is named. */
  readonly hubs?: readonly string[]
  readonly data: string
  /** Who an operator's act is recorded under; the OS user when nothing names one. */
  readonly actor: string
}

/** How a hub is reached over HTTP. */
export interface HttpSettings {
  readonly url: string
  readonly token?: string
  /** PEM files: a CA to trust, and a client certificate with its key. */
  readonly ca?: string
  readonly clientCert?: string
  readonly clientKey?: string
}

/** Settings, and everything that is wrong with what was given for them. */
export interface ReadSettings {
  readonly settings: Settings
  readonly problems: readonly string[]
}

const configFile = 'holdfast.config.json'
export const defaultHub = 'hf'
export const defaultData = '.holdfast'

const members = {
  redis: z.string().superRefine((url, context) => {
    const problem = problemOf(() => redactUrl(url))
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem })
  }),
  redisCa: z.string().refine(isReadable, 'names no file that can be read'),
  redisCert: z.string().refine(isReadable, 'names no file that can be read'),
  redisKey: z.string().refine(isReadable, 'names no file that can be read'),
  url: z.string().refine(isHttpUrl, 'must be http:// or https:// without user, password, query or fragment'),
  token: z.string().regex(/^[\x21-\x7e]{1,512}$/, 'is no token'),
  ca: z.string().refine(isReadable, 'names no file that can be read'),
  clientCert: z.string().refine(isReadable, 'names no file that can be read'),
  clientKey: z.string().refine(isReadable, 'names no file that can be read'),
  hub: z.string().refine(isHubName, nameForm),
  hubs: z.string().superRefine((text, context) => {
    const problem = problemOf(() => hubNames(text))
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem })
  }),
  data: z.string().min(1, 'names no folder'),
  actor: z.string().refine(isActor, 'must be 1 to 1024 bytes of text'),
}
type Member = keyof typeof members

const fileSchema = z.strictObject(members).partial()
type FileMembers = z.infer<typeof fileSchema>

/** The variable of the environment for each member of the configuration. */
export const variables: Readonly<Record<Member, string>> = {
  redis: 'HOLDFAST_REDIS',
  redisCa: 'HOLDFAST_REDIS_CA',
  redisCert: 'HOLDFAST_REDIS_CERT',
  redisKey: 'HOLDFAST_REDIS_KEY',
  url: 'HOLDFAST_URL',
  token: 'HOLDFAST_TOKEN',
  ca: 'HOLDFAST_CA',
  clientCert: 'HOLDFAST_CLIENT_CERT',
  clientKey: 'HOLDFAST_CLIENT_KEY',
  hub: 'HOLDFAST_HUB',
  hubs: 'HOLDFAST_HUBS',
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

  function sourceOf(member: Member): Source {
    if (typeof flags[member] === 'string') return 'flag'
    if (env[variables[member]]) return 'variable'
    return file.members[member] === undefined ? 'none' : 'file'
  }

  function pick(member: Member): string | undefined {
    const source = sourceOf(member)
    if (source === 'none' || source === 'file') return file.members[member]
    const checked = check(members[member], source === 'flag' ? flags[member] : env[variables[member]])
    if (checked.ok) return checked.value
    for (const { message } of checked.faults) problems.push(`${nameOf(member, source)}: ${message}`)
    return undefined
  }

  /** Of the two ways to the record the one that was named with more weight. */
  function placeOf(): Pick<Settings, 'redis' | 'http'> {
    const [redis, url] = [pick('redis'), pick('url')]
    const [byRedis, byUrl] = [sourceOf('redis'), sourceOf('url')]
    if (byRedis === byUrl && byUrl !== 'none') {
      problems.push(`${nameOf('redis', byRedis)} and ${nameOf('url', byUrl)}: give one of them`)
    }
    const onRecord = sources.indexOf(byRedis) < sources.indexOf(byUrl)
    if (onRecord || byUrl === 'none') refuseCredentials()
    if (onRecord) return redis === undefined ? {} : { redis: withTls(redis) }
    return url === undefined ? {} : { http: httpOf(url) }
  }

  /** Of one hub and a set the one that was named with more weight. */
  function hubsOf(): Pick<Settings, 'hub' | 'hubs'> {
    const [hub, set] = [pick('hub'), pick('hubs')]
    const [byHub, bySet] = [sourceOf('hub'), sourceOf('hubs')]
    if (byHub === bySet && bySet !== 'none') {
      problems.push(`${nameOf('hub', byHub)} and ${nameOf('hubs', bySet)}: give one of them`)
    }
    const isSet = sources.indexOf(bySet) < sources.indexOf(byHub)
    const [first, ...others] = isSet && set !== undefined ? hubNames(set) : []
    return first === undefined ? { hub: hub ?? defaultHub } : { hub: first, hubs: [first, ...others] }
  }

  /** PEM files belong to a `rediss://` URL; what speaks plainly takes no notice of a file that was set for another one. */
  function withTls(url: string): RedisAddress {
    const [ca, cert, key] = [textOf(pick('redisCa')), textOf(pick('redisCert')), textOf(pick('redisKey'))]
    if ((cert === undefined) !== (key === undefined))
      problems.push('--redis-cert and --redis-key belong together')
    const isGiven = ca !== undefined || cert !== undefined
    if (url.startsWith('rediss')) return isGiven ? { url, tls: { ca, cert, key } } : url
    for (const member of redisFiles.filter((each) => sourceOf(each) === 'flag')) {
      problems.push(`${flagOf(member)}: belongs to a rediss:// URL`)
    }
    return url
  }

  /** A flag that says who speaks to a hub, where none is spoken to: the hub was meant, not the record. */
  function refuseCredentials(): void {
    for (const member of credentials.filter((each) => sourceOf(each) === 'flag')) {
      problems.push(`${flagOf(member)}: belongs to --url, which is not given`)
    }
  }

  function httpOf(url: string): HttpSettings {
    // What the file holds for its own hub is not shown to another one.
    const elsewhere = file.members.url !== undefined && file.members.url !== url
    const [token, ca, clientCert, clientKey] = credentials.map((member) =>
      elsewhere && sourceOf(member) === 'file' ? undefined : pick(member),
    )
    if ((clientCert === undefined) !== (clientKey === undefined)) {
      problems.push('--client-cert and --client-key belong together')
    }
    return {
      url,
      ...(token === undefined ? {} : { token }),
      ...(ca === undefined ? {} : { ca }),
      ...(clientCert === undefined ? {} : { clientCert }),
      ...(clientKey === undefined ? {} : { clientKey }),
    }
  }

  const settings = {
    ...placeOf(),
    ...hubsOf(),
    data: pick('data') ?? defaultData,
    actor: pick('actor') ?? osUser(),
  }
  return { settings, problems }
}

/** Where a setting was given, the weightier first. */
const sources = ['flag', 'variable', 'file', 'none'] as const
type Source = (typeof sources)[number]

const redisFiles = ['redisCa', 'redisCert', 'redisKey'] as const

/** What belongs to a URL. */
const credentials = ['token', 'ca', 'clientCert', 'clientKey'] as const

/** A setting as its source names it. */
function nameOf(member: Member, source: Source): string {
  if (source === 'flag') return flagOf(member)
  return source === 'variable' ? variables[member] : `${configFile}: ${member}`
}

function flagOf(member: Member): string {
  return `--${member.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

function isHttpUrl(text: string): boolean {
  try {
    const { search, hash } = httpUrl(text)
    return search === '' && hash === ''
  } catch {
    return false
  }
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
  const checked = check(fileSchema, value)
  if (checked.ok) return { members: checked.value, problems: [] }
  return { members: {}, problems: checked.faults.map(problemOfFile) }
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

function problemOfFile({ path, message }: Fault): string {
  const place = path.length === 0 ? '' : `${path.map(String).join('.')}: `
  return `${configFile}: ${place}${message}`
}

function problemOf(read: () => unknown): string | undefined {
  try {
    read()
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
