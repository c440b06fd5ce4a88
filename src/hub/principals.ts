import { createHash, randomBytes, X509Certificate } from 'node:crypto'
import { HoldfastError } from '../contract/errors.js'
import type { PrincipalAdded, PrincipalInput } from '../contract/hub.js'
import { hostId, printableId } from '../contract/ids.js'
import type { PrincipalView } from '../contract/principal-views.js'
import { isRole, type Role } from '../contract/principals.js'
import { isScope } from '../contract/sessions.js'
import type { Functions } from '../record/functions.js'
import type { Keys } from '../record/keys.js'
import type { Reader } from '../record/reader.js'
import { present } from '../record/replies.js'

/** A principal with the digest of its token, for those who check credentials. */
export interface PrincipalRow {
  readonly view: PrincipalView
  /** SHA-256 in lower-case hex. */
  readonly tokenSha256?: string
}

const namesAtOnce = 1000

/** Every principal that was ever added, revoked ones too, oldest first. */
export async function readPrincipals(reader: Reader, keys: Keys): Promise<PrincipalRow[]> {
  const rows: PrincipalRow[] = []
  for (let first = 0; ; first += namesAtOnce) {
    const range = ['ZRANGE', keys.principals, first, first + namesAtOnce - 1, 'WITHSCORES']
    const names = (await reader.strings(range)).filter((_, at) => at % 2 === 0)
    const hashes = await reader.hashes(names.map((name) => keys.principal(name)))
    for (const [at, name] of names.entries()) {
      const row = principalRow(name, hashes[at] ?? new Map())
      if (row !== undefined) rows.push(row)
    }
    if (names.length < namesAtOnce) return rows
  }
}

/** A row that was deleted or mangled by hand is no principal: whoever used it is unknown from then on. */
function principalRow(name: string, row: ReadonlyMap<string, string>): PrincipalRow | undefined {
  const role = row.get('role') ?? ''
  const [tokenSha256, certificateSha256] = [row.get('token_sha256'), row.get('certificate_sha256')]
  const both = tokenSha256 !== undefined && certificateSha256 !== undefined
  if (!isRole(role)) return undefined
  const revokedAt = row.get('revoked_at')
  const view: PrincipalView = {
    name,
    role,
    ...present('host', row.get('host')),
    scopes: scopesOf(row.get('scopes')),
    anySender: row.get('any_sender') === '1',
    credential: both ? 'both' : tokenSha256 === undefined ? 'certificate' : 'token',
    ...present('certificateSha256', certificateSha256),
    createdAt: Number(row.get('created_at') ?? 0),
    createdBy: row.get('created_by') ?? '',
    ...present('revokedAt', revokedAt === undefined ? undefined : Number(revokedAt)),
    ...present('revokedBy', row.get('revoked_by')),
    ...present('revokedReason', row.get('revoked_reason')),
  }
  return { view, ...present('tokenSha256', tokenSha256) }
}

function scopesOf(text: string | undefined): string[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
  } catch {
    return []
  }
}

/**
 * Adds a principal, with a token made here unless a certificate is pinned or the digest of a token is given. The
 * token is in this answer alone.
 * @throws PRINCIPAL_EXISTS, INVALID_ARGUMENT
 */
export async function addPrincipal(
  parts: { readonly functions: Functions; readonly reader: Reader; readonly keys: Keys },
  input: PrincipalInput,
  actor: string,
): Promise<PrincipalAdded> {
  const { name, role, host, scopes, anySender } = checked(input)
  const certificateSha256 = input.certificate === undefined ? undefined : certificateDigest(input.certificate)
  const token = (certificateSha256 ?? input.tokenSha256) === undefined ? mintToken() : undefined
  const tokenSha256 = token === undefined ? input.tokenSha256 : digestOf(token)
  await parts.functions.addPrincipal(
    { name, role, host, scopes, anySender, tokenSha256, certificateSha256 },
    actor,
  )
  return { principal: await readPrincipal(parts.reader, parts.keys, name), ...present('token', token) }
}

/** @throws PRINCIPAL_NOT_FOUND, INVALID_ARGUMENT */
export async function readPrincipal(reader: Reader, keys: Keys, name: string): Promise<PrincipalView> {
  const row = principalRow(name, await reader.hash(keys.principal(printableId(name, 'name'))))
  if (row === undefined) throw new HoldfastError('PRINCIPAL_NOT_FOUND', `no principal "${name}"`)
  return row.view
}

function checked(input: PrincipalInput): PrincipalInput & { readonly role: Role } {
  printableId(input.name, 'name')
  const problems: string[] = []
  if (!isRole(input.role)) problems.push('a role is producer, node, operator or viewer')
  if (input.role === 'node' && input.host === undefined) problems.push('a node principal needs a host')
  if (input.role !== 'node' && input.host !== undefined) problems.push('only a node principal has a host')
  if (input.role !== 'node' && (input.scopes?.length ?? 0) > 0)
    problems.push('only a node principal has scopes')
  if (input.role !== 'producer' && input.anySender === true) problems.push('only a producer names senders')
  for (const scope of input.scopes ?? []) {
    if (!isScope(scope)) problems.push(`scope ${JSON.stringify(scope)} is no canonical absolute path`)
  }
  if (problems.length > 0) throw new HoldfastError('INVALID_ARGUMENT', problems.join('; '))
  if (input.host !== undefined) hostId(input.host)
  return input
}

/** 256 random bits: a digest without salt is enough to keep them secret. */
function mintToken(): string {
  return `hft_${randomBytes(32).toString('base64url')}`
}

/** SHA-256 in lower-case hex. */
export function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** The fingerprint of a PEM certificate: SHA-256 of its DER form, lower-case hex. @throws INVALID_ARGUMENT */
export function certificateDigest(pem: string): string {
  try {
    return new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase()
  } catch (error) {
    throw new HoldfastError('INVALID_ARGUMENT', 'the certificate is no PEM certificate', { cause: error })
  }
}
