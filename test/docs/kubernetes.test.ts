import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { z } from 'zod'
import { defaultLimits } from '../../src/http/limits.js'
import { checkedOptions } from '../../src/node/node-options.js'
import { problemOfWords } from './commands.js'
import { containersOf, manifest, manifests, podsOf } from './manifests.js'

// The manifests of docs/operations/kubernetes, looked at: what they name exists, and what they promise fits together.
// What they start is started by kubernetes-run.test.ts.

const root = new URL('../../', import.meta.url)
const read = (name: string) => readFileSync(fileURLToPath(new URL(name, root)), 'utf8')
const pods = podsOf(manifests)
const containers = pods.flatMap((pod) =>
  containersOf(pod).map((container) => ({ pod, container, name: `${pod.owner}/${container.name}` })),
)
const ours = containers.filter(({ container }) => container.image.startsWith('holdfast:'))

test('there are the objects of an installation, all in the namespace', () => {
  expect(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
    'Namespace holdfast',
    'ConfigMap redis',
    'Service redis',
    'StatefulSet redis',
    'PodDisruptionBudget redis',
    'NetworkPolicy redis',
    'Job holdfast-init',
    'Service holdfast',
    'Deployment holdfast-hub',
    'PodDisruptionBudget holdfast-hub',
    'Service node-example',
    'StatefulSet node-example',
    'PodDisruptionBudget node-example',
  ])
  for (const { kind, metadata } of manifests)
    if (kind !== 'Namespace') expect(metadata.namespace, metadata.name).toBe('holdfast')
})

describe('what runs Holdfast', () => {
  const variables = new Set(
    `${read('src/cli/config.ts')}${read('src/cli/log.ts')}`.match(/HOLDFAST_[A-Z_]+/g),
  )

  test.each(ours)('$name names verbs, flags and variables that there are', ({ container }) => {
    expect(container.command, 'the entry point of the image is the command line').toBeUndefined()
    expect(problemOfWords(container.args ?? [])).toBeUndefined()
    for (const { name } of container.env ?? [])
      if (name.startsWith('HOLDFAST_')) expect([...variables], name).toContain(name)
    expect(container.image).toBe(
      `holdfast:${(JSON.parse(read('package.json')) as { version: string }).version}`,
    )
  })

  test.each(ours)(
    '$name names no variable that it does not have, and no secret by its value',
    ({ container }) => {
      const before = new Set<string>()
      for (const { name, value, valueFrom } of container.env ?? []) {
        for (const [, used = ''] of (value ?? '').matchAll(/\$\((\w+)\)/g))
          expect([...before], name).toContain(used)
        if (/PASSWORD|TOKEN/.test(name)) expect(valueFrom?.['secretKeyRef'], name).toBeDefined()
        before.add(name)
      }
      for (const [, used = ''] of (container.args ?? []).join(' ').matchAll(/\$\((\w+)\)/g))
        expect([...before]).toContain(used)
    },
  )

  test('the user is that of the image', () => {
    expect(read('Dockerfile')).toContain('USER node')
    for (const { pod } of ours)
      expect(pod.spec.securityContext).toMatchObject({ runAsUser: 1000, fsGroup: 1000 })
  })
})

describe('every container', () => {
  test.each(containers)('$name runs with the least rights, and says what it needs', ({ pod, container }) => {
    expect(pod.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(pod.spec.automountServiceAccountToken).toBe(false)
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(container.resources).toMatchObject({
      requests: { cpu: expect.stringMatching(/^\d+m$/), memory: expect.stringMatching(/^\d+[MG]i$/) },
      limits: { memory: expect.stringMatching(/^\d+[MG]i$/) },
    })
  })

  test.each(containers)('$name mounts what its pod has', ({ pod, container }) => {
    const volumes = [...(pod.spec.volumes ?? []), ...pod.claims].map(({ name }) => name)
    for (const { name } of container.volumeMounts ?? []) expect(volumes).toContain(name)
    const paths = (container.volumeMounts ?? []).map(({ mountPath }) => mountPath)
    for (const word of container.args ?? [])
      if (word.startsWith('/'))
        expect(
          paths.some((path) => word === path || word.startsWith(`${path}/`)),
          word,
        ).toBe(true)
  })

  test.each(containers)(
    '$name is probed at a port that it has, at a route that there is',
    ({ container }) => {
      const ports = (container.ports ?? []).map(({ name }) => name)
      const page = read('docs/http.md')
      for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
        if (probe?.httpGet !== undefined) {
          expect(ports).toContain(probe.httpGet.port)
          expect(page).toContain(`### \`GET ${probe.httpGet.path}\``)
        }
        if (probe?.tcpSocket !== undefined) expect(ports).toContain(probe.tcpSocket.port)
      }
    },
  )
})

describe('the hub', () => {
  const { container, pod } = ours.find(({ name }) => name === 'holdfast-hub/hub') ?? {
    container: undefined,
    pod: undefined,
  }

  it('listens where it is probed, alive by /livez and ready by /readyz', () => {
    const listen = container?.args?.[container.args.indexOf('--listen') + 1]
    expect(listen).toBe(`0.0.0.0:${container?.ports?.[0]?.containerPort}`)
    expect(container?.startupProbe?.httpGet?.path).toBe('/livez')
    expect(container?.livenessProbe?.httpGet?.path).toBe('/livez')
    expect(container?.readinessProbe?.httpGet?.path).toBe('/readyz')
  })

  it('has time to drain, and another beside it', () => {
    const pause = Number(container?.lifecycle?.preStop.exec.command[1])
    expect(pod?.spec.terminationGracePeriodSeconds).toBeGreaterThan(pause + defaultLimits.drainMs / 1000 + 5)
    expect(manifest('Deployment', 'holdfast-hub').spec['replicas']).toBe(2)
    expect(manifest('PodDisruptionBudget', 'holdfast-hub').spec['minAvailable']).toBe(1)
  })
})

describe('a node', () => {
  const { container, pod } = ours.find(({ name }) => name === 'node-example/node') ?? {
    container: undefined,
    pod: undefined,
  }

  it('keeps its mirror on a claim of its own, that outlives it', () => {
    const data = container?.args?.[container.args.indexOf('--data') + 1]
    const mount = container?.volumeMounts?.find(({ mountPath }) => mountPath === data)
    expect(pod?.claims.map(({ name }) => name)).toEqual([mount?.name])
    const set = manifest('StatefulSet', 'node-example')
    expect(set.spec['persistentVolumeClaimRetentionPolicy']).toEqual({
      whenDeleted: 'Retain',
      whenScaled: 'Retain',
    })
    expect(set.spec['volumeClaimTemplates']).toMatchObject([{ spec: { accessModes: ['ReadWriteOncePod'] } }])
  })

  it('is called after its pod, and has time to drain', () => {
    expect(container?.args).toContain('$(POD_NAME)')
    const { drainMs } = checkedOptions({ host: 'a', mirror: 'm', redis: 'redis://a', execute: () => 'done' })
    expect(pod?.spec.terminationGracePeriodSeconds).toBeGreaterThan(drainMs / 1000 + 5)
  })
})

describe('what names another', () => {
  test.each(
    manifests.filter(({ kind }) => ['Service', 'PodDisruptionBudget', 'NetworkPolicy'].includes(kind)),
  )('$kind $metadata.name finds its pods', ({ spec }) => {
    const labels = z.record(z.string(), z.string())
    const given = spec['podSelector'] ?? spec['selector']
    const { matchLabels } = z.looseObject({ matchLabels: labels.optional() }).parse(given)
    const selector = matchLabels ?? labels.parse(given)
    const found = pods.filter((pod) =>
      Object.entries(selector).every(([key, value]) => pod.labels[key] === value),
    )
    expect(found).toHaveLength(1)
    for (const { targetPort } of (spec['ports'] ?? []) as { targetPort?: string }[])
      if (targetPort !== undefined)
        expect(containersOf(found[0]).flatMap(({ ports = [] }) => ports.map(({ name }) => name))).toContain(
          targetPort,
        )
  })

  it('lets those to Redis that have its URL, and nobody else', () => {
    for (const pod of pods) {
      const hasUrl = containersOf(pod).some(({ env = [] }) =>
        env.some(({ name }) => name === 'HOLDFAST_REDIS'),
      )
      expect(pod.labels['holdfast/record'] === 'yes', pod.owner).toBe(hasUrl)
    }
  })

  it('holds no value of a secret', () => {
    for (const { kind } of manifests) expect(kind).not.toBe('Secret')
  })
})
