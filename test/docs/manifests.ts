import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { z } from 'zod'

// The manifests of docs/operations/kubernetes as objects.

const probe = z
  .strictObject({
    httpGet: z.strictObject({ path: z.string(), port: z.string(), scheme: z.literal('HTTPS') }).optional(),
    tcpSocket: z.strictObject({ port: z.string() }).optional(),
    exec: z.strictObject({ command: z.array(z.string()) }).optional(),
    periodSeconds: z.number(),
    timeoutSeconds: z.number().optional(),
    failureThreshold: z.number().optional(),
  })
  .optional()

const container = z.strictObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  env: z
    .array(
      z.strictObject({
        name: z.string(),
        value: z.string().optional(),
        valueFrom: z.record(z.string(), z.record(z.string(), z.string())).optional(),
      }),
    )
    .optional(),
  ports: z.array(z.strictObject({ name: z.string(), containerPort: z.number() })).optional(),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  lifecycle: z
    .strictObject({ preStop: z.strictObject({ exec: z.strictObject({ command: z.array(z.string()) }) }) })
    .optional(),
  resources: z.unknown(),
  securityContext: z.unknown(),
  volumeMounts: z
    .array(z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.literal(true).optional() }))
    .optional(),
})
export type Container = z.infer<typeof container>

const named = z.looseObject({ name: z.string() })
const podSpec = z.strictObject({
  restartPolicy: z.literal('OnFailure').optional(),
  automountServiceAccountToken: z.boolean(),
  enableServiceLinks: z.literal(false),
  terminationGracePeriodSeconds: z.number().optional(),
  shareProcessNamespace: z.literal(true).optional(),
  securityContext: z.record(z.string(), z.unknown()),
  topologySpreadConstraints: z.array(z.unknown()).optional(),
  initContainers: z.array(container).optional(),
  containers: z.array(container),
  volumes: z.array(named).optional(),
})

/** What a manifest says of the pods that it makes. */
export interface Pod {
  readonly owner: string
  readonly labels: Readonly<Record<string, string>>
  readonly spec: z.infer<typeof podSpec>
  /** Claims that are made for each pod. */
  readonly claims: readonly { readonly name: string }[]
}

const object = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }),
  spec: z.record(z.string(), z.unknown()).default({}),
  data: z.record(z.string(), z.string()).optional(),
})
export type Manifest = z.infer<typeof object>

const folder = fileURLToPath(new URL('../../docs/operations/kubernetes/', import.meta.url))

/** Every object, in the order in which `kubectl apply -f` takes the files. */
export const manifests: readonly Manifest[] = readdirSync(folder)
  .sort()
  .flatMap((name) =>
    parseAllDocuments(readFileSync(`${folder}${name}`, 'utf8'), { uniqueKeys: true }).map((document) => {
      if (document.errors.length > 0) throw new Error(`${name}: ${document.errors.join('; ')}`)
      return object.parse(document.toJS())
    }),
  )

export function manifest(kind: string, name: string): Manifest {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name)
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`)
  return found
}

export function podsOf(all: readonly Manifest[]): Pod[] {
  const template = z.strictObject({
    metadata: z.strictObject({ labels: z.record(z.string(), z.string()) }),
    spec: podSpec,
  })
  const claims = z.array(z.object({ metadata: z.object({ name: z.string() }) })).default([])
  return all
    .filter(({ spec }) => spec['template'] !== undefined)
    .map(({ metadata, spec }) => {
      const { metadata: ofPod, spec: podOf } = template.parse(spec['template'])
      return {
        owner: metadata.name,
        labels: ofPod.labels,
        spec: podOf,
        claims: claims.parse(spec['volumeClaimTemplates']).map((claim) => claim.metadata),
      }
    })
}

export function containersOf(pod: Pod | undefined): Container[] {
  return pod === undefined ? [] : [...(pod.spec.initContainers ?? []), ...pod.spec.containers]
}
