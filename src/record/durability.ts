import { isHoldfastError } from '../contract/errors.js'
import type { Store } from './connections.js'

/** One thing that a record needs of its server (contract section 9, durability handshake). */
export interface DurabilityCheck {
  readonly name: string
  /** As it is. */
  readonly value: string
  /** `accepted`: less than is needed, but explicitly chosen. */
  readonly verdict: 'ok' | 'accepted' | 'bad'
  /** What to do about it; a line to run where there is one. */
  readonly fix?: string | undefined
}

/** What an operator has chosen to live with, by settings of the record. */
export interface Accepted {
  /** `accept_everysec`: a power cut may take a second of what was acknowledged. */
  readonly everysec: boolean
  /** `accept_unseen_config`: CONFIG is forbidden here, and the rest was seen to by other means. */
  readonly unseenConfig: boolean
}

const leastVersion = [7, 0] as const

/**
 * Looks at what the server does with what it is given. Reads INFO and CONFIG; changes nothing.
 * @throws STORE_UNAVAILABLE, DEADLINE_EXCEEDED
 */
export async function checkDurability(store: Store, accepted: Accepted): Promise<DurabilityCheck[]> {
  const info = await unlessForbidden(async () => parseInfo(String(await store.call(['INFO']))))
  const config = await unlessForbidden(async () => readConfig(store))
  return [...(info === undefined ? [unseen] : informed(info)), ...configured(config, accepted)]
}

const unseen: DurabilityCheck = {
  name: 'info',
  value: 'INFO is forbidden',
  verdict: 'bad',
  fix: 'allow INFO to the user that is named with --redis: nothing else tells whether the server is a primary that writes its AOF',
}

function informed(info: ReadonlyMap<string, string>): DurabilityCheck[] {
  return [version(info), role(info), ...aof(info)]
}

function version(info: ReadonlyMap<string, string>): DurabilityCheck {
  const value = info.get('valkey_version') ?? info.get('redis_version') ?? ''
  const [major = 0, minor = 0] = value.split('.').map(Number)
  const [leastMajor, leastMinor] = leastVersion
  const isEnough = major > leastMajor || (major === leastMajor && minor >= leastMinor)
  return check('version', value, isEnough, 'use Redis 7.0 or later, or Valkey')
}

function role(info: ReadonlyMap<string, string>): DurabilityCheck {
  const value = info.get('role') ?? ''
  return check('role', value, value === 'master', 'name the primary with --redis: a replica takes no writes')
}

function aof(info: ReadonlyMap<string, string>): DurabilityCheck[] {
  const enabled = info.get('aof_enabled') ?? ''
  const written = info.get('aof_last_write_status') ?? ''
  return [
    check('aof_enabled', enabled, enabled === '1', 'redis-cli CONFIG SET appendonly yes'),
    check(
      'aof_last_write_status',
      written,
      written === 'ok',
      'see the log of the server: its disk is full or fails',
    ),
  ]
}

const wanted = {
  appendonly: { value: 'yes', fix: 'redis-cli CONFIG SET appendonly yes' },
  appendfsync: {
    value: 'always',
    fix: 'redis-cli CONFIG SET appendfsync always (or accept less: holdfast config set accept_everysec 1)',
  },
  'no-appendfsync-on-rewrite': { value: 'no', fix: 'redis-cli CONFIG SET no-appendfsync-on-rewrite no' },
  'maxmemory-policy': { value: 'noeviction', fix: 'redis-cli CONFIG SET maxmemory-policy noeviction' },
} as const

function configured(config: ReadonlyMap<string, string> | undefined, accepted: Accepted): DurabilityCheck[] {
  if (config === undefined) {
    const fix =
      'allow CONFIG GET, or see to AOF, fsync and eviction yourself and say so: holdfast config set accept_unseen_config 1'
    const verdict = accepted.unseenConfig ? 'accepted' : 'bad'
    return [{ name: 'config', value: 'CONFIG is forbidden', verdict, fix }]
  }
  return Object.entries(wanted).map(([name, { value: right, fix }]) => {
    const value = config.get(name) ?? ''
    if (value === right) return { name, value, verdict: 'ok' }
    const isChosen = name === 'appendfsync' && value === 'everysec' && accepted.everysec
    return { name, value, verdict: isChosen ? 'accepted' : 'bad', fix }
  })
}

async function readConfig(store: Store): Promise<ReadonlyMap<string, string>> {
  const reply = (await store.call(['CONFIG', 'GET', ...Object.keys(wanted)])) as string[]
  const found = new Map<string, string>()
  for (let at = 0; at + 1 < reply.length; at += 2) found.set(String(reply[at]), String(reply[at + 1]))
  return found
}

/** Undefined where the server, or this user's rights, forbid the command. */
async function unlessForbidden<Answer>(look: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await look()
  } catch (error) {
    if (isHoldfastError(error, 'STORE_UNAVAILABLE', 'DEADLINE_EXCEEDED') && !isDenial(error)) throw error
    return undefined
  }
}

/** The server, or this user's rights, forbid the command. */
export function isDenial(error: Error): boolean {
  return /NOPERM|unknown command/i.test(error.message)
}

function check(name: string, value: string, isRight: boolean, fix: string): DurabilityCheck {
  return isRight ? { name, value, verdict: 'ok' } : { name, value, verdict: 'bad', fix }
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0 && !line.startsWith('#')) found.set(line.slice(0, colon), line.slice(colon + 1))
  }
  return found
}
