import { createHash } from 'node:crypto'
import { HoldfastError, isHoldfastError } from '../contract/errors.js'
import type { HubCalls, PrincipalAdded, PrincipalInput } from '../contract/hub.js'
import { naming, qualifiedId } from '../contract/hub-set.js'
import type { PrincipalView } from '../contract/principal-views.js'
import type { AuditView, SettingView } from '../contract/upkeep-views.js'
import { sums } from './lists.js'
import { askAll, type Members, onAll, type Said } from './members.js'

type AdministrationCalls = Pick<
  HubCalls,
  | 'sweeps'
  | 'audit'
  | 'configuration'
  | 'configure'
  | 'principals'
  | 'principal'
  | 'addPrincipal'
  | 'revokePrincipal'
>

/** Settings and principals stand on every hub; sweeps and the audit are of each. */
export function administrationCalls(members: Members): AdministrationCalls {
  const principal = async (name: string): Promise<PrincipalView> => {
    const said = await askAll(members, async ({ calls }) => {
      try {
        return await calls.principal(name)
      } catch (error) {
        if (isHoldfastError(error, 'PRINCIPAL_NOT_FOUND')) return undefined
        throw error
      }
    })
    const known = said.flatMap(({ hub, value }) => (value === undefined ? [] : [{ hub, value }]))
    const view = principalOf(members, known)
    if (view === undefined) throw new HoldfastError('PRINCIPAL_NOT_FOUND', `no principal "${name}"`)
    return view
  }
  return {
    sweeps: async () =>
      (await askAll(members, ({ calls }) => calls.sweeps())).flatMap(({ hub, value }) =>
        value.map((view) => ({ ...view, hub })),
      ),
    audit: async (onProgress) => {
      const courses = new Map<string, { done: number; total: number }>()
      const of = (hub: string) => (done: number, total: number) => {
        courses.set(hub, { done, total })
        const all = [...courses.values()]
        onProgress?.(sumOf(all, 'done'), sumOf(all, 'total'))
      }
      return auditOf(await askAll(members, ({ hub, calls }) => calls.audit(onProgress && of(hub))))
    },
    configuration: async () => settingsOf(await askAll(members, ({ calls }) => calls.configuration())),
    configure: async (changes, actor) => {
      await onAll(members, {
        what: 'the settings are changed',
        act: ({ calls }) => calls.configure(changes, actor),
      })
    },
    principals: async () => {
      const byName = new Map<string, Said<PrincipalView>[]>()
      for (const { hub, value } of await askAll(members, ({ calls }) => calls.principals())) {
        for (const view of value)
          byName.set(view.name, [...(byName.get(view.name) ?? []), { hub, value: view }])
      }
      return [...byName.values()].flatMap((known) => principalOf(members, known) ?? [])
    },
    principal,
    addPrincipal: (input, actor) => addPrincipal(members, input, actor),
    revokePrincipal: async (name, options) => {
      await onAll(members, {
        what: `principal "${name}" is revoked`,
        absent: 'PRINCIPAL_NOT_FOUND',
        act: ({ calls }) => calls.revokePrincipal(name, options),
      })
    },
  }
}

/**
 * The first hub makes the token, the others take its digest. Where some of those fail, the answer says so in
 * `missing`, for a token that an error swallowed would be lost: the same again with its digest finishes it.
 */
async function addPrincipal(members: Members, input: PrincipalInput, actor: string): Promise<PrincipalAdded> {
  const what = `principal "${input.name}" is added`
  const addAll = (given: PrincipalInput) =>
    onAll(members, { what, act: ({ calls }) => calls.addPrincipal(given, actor) })
  const viewOf = (said: readonly Said<PrincipalAdded>[]) =>
    principalOf(
      members,
      said.map(({ hub, value }) => ({ hub, value: value.principal })),
    ) as PrincipalView
  if (input.certificate !== undefined || input.tokenSha256 !== undefined) {
    return { principal: viewOf(await addAll(input)) }
  }
  const [first] = members.all as [Members['all'][number]]
  const made = await naming(first.hub, () => first.calls.addPrincipal(input, actor))
  const { token = '' } = made
  const tokenSha256 = createHash('sha256').update(token).digest('hex')
  try {
    return { principal: viewOf(await addAll({ ...input, tokenSha256 })), token }
  } catch (error) {
    if (!isHoldfastError(error, 'SET_INCOMPLETE')) throw error
    const { missing } = error.current as { missing: string[] }
    return { principal: { ...made.principal, missing }, token }
  }
}

/** A principal as the set lets it in: as long as one hub does, with those that do not. */
function principalOf(members: Members, known: readonly Said<PrincipalView>[]): PrincipalView | undefined {
  const standing = known.filter(({ value }) => value.revokedAt === undefined)
  const view = (standing[0] ?? known[0])?.value
  if (view === undefined || standing.length === 0) return view
  const missing = members.names.filter((name) => !standing.some(({ hub }) => hub === name))
  return missing.length === 0 ? view : { ...view, missing }
}

/** Those of the first hub, and under `<hub>:<name>` what is otherwise on another. */
function settingsOf(said: readonly Said<SettingView[]>[]): SettingView[] {
  const [first, ...others] = said
  const own = first?.value ?? []
  const byName = new Map(own.map((view) => [view.name, view]))
  const differing = others.flatMap(({ hub, value }) =>
    value
      .filter((view) => byName.get(view.name)?.set !== view.set)
      .map((view) => ({ ...view, name: qualifiedId(hub, view.name) })),
  )
  return [...own, ...differing]
}

function sumOf<Name extends string>(all: readonly Readonly<Record<Name, number>>[], name: Name): number {
  return all.reduce((sum, each) => sum + each[name], 0)
}

function auditOf(said: readonly Said<AuditView>[]): AuditView {
  const total = { recipients: 0, byState: {}, owed: 0, pruned: 0 }
  const sum: AuditView = { conservation: total, deliveries: 0, messages: 0, disagreements: [], more: false }
  return said.reduce(
    (all, { hub, value }) => ({
      conservation: {
        recipients: all.conservation.recipients + value.conservation.recipients,
        byState: sums(all.conservation.byState, value.conservation.byState),
        owed: all.conservation.owed + value.conservation.owed,
        pruned: all.conservation.pruned + value.conservation.pruned,
      },
      deliveries: all.deliveries + value.deliveries,
      messages: all.messages + value.messages,
      disagreements: [
        ...all.disagreements,
        ...value.disagreements.map((each) => ({ ...each, about: qualifiedId(hub, each.about) })),
      ],
      more: all.more || value.more,
    }),
    sum,
  )
}
