import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import type { PrincipalAdded } from '../contract/hub.js'
import type { PrincipalView } from '../contract/principal-views.js'
import { type Role, roles } from '../contract/principals.js'
import { digestOf } from '../hub/principals.js'
import { withHub } from './context.js'
import { action, repeatable, value } from './flags.js'
import { answer, fields, print, printTable, say } from './output.js'
import { canonical } from './scopes.js'
import { isoTime } from './times.js'

/** A flag that one role alone may have; told beside whatever else is wrong. */
function goesWith(only: Role, flag: 'host' | 'scope' | 'anySender') {
  const fits = (given: { role: Role; host?: unknown; scope?: unknown; anySender?: unknown }) =>
    given.role === only || !given[flag] || !roles.includes(given.role)
  const problem: { path: string[]; error: string; when: () => boolean } = {
    path: [flag],
    error: `is for a ${only} alone`,
    when: () => true,
  }
  return [fits, problem] as const
}

const addSchema = z
  .object({
    role: z.enum(roles, { error: `must be one of ${roles.join(', ')}` }),
    name: value.id.optional(),
    host: value.host.optional(),
    scope: z.array(value.text.min(1, 'names no folder')).optional(),
    anySender: value.flag,
    cert: value.readableFile.optional(),
    tokenSha256: value.digest.optional(),
  })
  .refine(({ role, host }) => role !== 'node' || host !== undefined, {
    path: ['host'],
    error: 'is required for a node',
    when: () => true,
  })
  .refine(...goesWith('node', 'host'))
  .refine(...goesWith('node', 'scope'))
  .refine(...goesWith('producer', 'anySender'))
const revokeSchema = z.object({ name: value.id, reason: value.sentence })
const head = ['name', 'role', 'host', 'scopes', 'credential', 'added', 'revoked', 'reason']

/** `holdfast principal add|ls|revoke`. */
export function addPrincipal(program: Command): void {
  const principal = program.command('principal').description('who may speak over HTTP, and as what')
  addAdd(principal)
  addList(principal)
  addRevoke(principal)
}

function addAdd(principal: Command): void {
  principal
    .command('add')
    .description('let someone speak; the token is shown this once. From the first on, nobody is anonymous')
    .argument('<role>', roles.join(', '))
    .option('--name <name>', 'what it is called in rows and in the log (the role, or node:<host>)')
    .option('--host <host>', 'for a node: the one host it serves')
    .addOption(repeatable('--scope <dir>', 'for a node: a directory whose sessions it may serve'))
    .option('--any-sender', 'for a producer: it may name other senders than itself')
    .option('--cert <file>', 'PEM of a client certificate to pin, instead of making a token')
    .option('--token-sha256 <hex>', 'digest of a token that exists already, instead of making one')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(addSchema, async (values, { settings, json }) => {
        const { role, host, anySender, cert, tokenSha256 } = values
        const added = await withHub(settings, (hub) =>
          hub.addPrincipal(
            {
              name: values.name ?? nameOf(role, host),
              role,
              host,
              scopes: values.scope?.map(canonical),
              anySender,
              certificate: cert === undefined ? undefined : readFileSync(cert, 'utf8'),
              tokenSha256,
            },
            settings.actor,
          ),
        )
        answer(json, added, printAdded)
      }),
    )
}

function nameOf(role: Role, host: string | undefined): string {
  return host === undefined ? role : `${role}:${host}`
}

function addList(principal: Command): void {
  principal
    .command('ls')
    .description('who may speak, and who might once')
    .action(
      action(z.object({}), async (_, { settings, json }) => {
        const principals = await withHub(settings, (hub) => hub.principals())
        answer(json, { principals }, () => printTable('principals', head, principals.map(rowOf)))
      }),
    )
}

function addRevoke(principal: Command): void {
  principal
    .command('revoke')
    .description('end a principal for good, at once, live connections included')
    .argument('<name>', 'the principal')
    .option('--reason <text>', 'why; kept on the row and in the log')
    .option('--actor <name>', 'who (the OS user)')
    .action(
      action(revokeSchema, async ({ name, reason }, { settings, json }) => {
        const view = await withHub(settings, async (hub) => {
          await hub.revokePrincipal(name, { reason, actor: settings.actor })
          return hub.principal(name)
        })
        answer(json, view, printRevoked)
      }),
    )
}

function rowOf(view: PrincipalView) {
  const { name, role, host, scopes, anySender, credential, createdAt, revokedAt, revokedReason } = view
  const partial = view.missing === undefined ? undefined : `partial: not on ${view.missing.join(', ')}`
  return [
    name,
    anySender ? `${role}, any sender` : role,
    host,
    scopes.join(' '),
    credential,
    isoTime(createdAt),
    revokedAt && isoTime(revokedAt),
    revokedReason ?? partial,
  ]
}

function printAdded({ principal, token }: PrincipalAdded): void {
  print(
    fields([
      ['principal', principal.name],
      ['role', principal.role],
      ['host', principal.host],
      ['certificate', principal.certificateSha256],
      ['token', token],
    ]),
  )
  if (token !== undefined) say('this token is shown now and never again')
  const { missing } = principal
  if (missing === undefined) return
  const how = token === undefined ? '' : ` with --token-sha256 ${digestOf(token)}`
  say(`not added on ${missing.join(', ')}: repeat the same command${how} to finish it`)
}

function printRevoked(view: PrincipalView): void {
  print(
    fields([
      ['principal', view.name],
      ['revoked', view.revokedAt && isoTime(view.revokedAt)],
    ]),
  )
}
