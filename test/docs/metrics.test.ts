import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, startHubServer, type TestHubServer } from '../support/http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'

// What docs/metrics.md says, against what a hub shows.

interface Metric {
  readonly type: string
  /** Names of labels, with the values that belong to them. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>
}

const page = readFileSync(fileURLToPath(new URL('../../docs/metrics.md', import.meta.url)), 'utf8')

let store: TestServer
let record: OpenRecord
let hub: TestHubServer
let shown: ReadonlyMap<string, Metric>

beforeAll(async () => {
  store = await startTestServer()
  record = await openRecord(store)
  hub = await startHubServer(record)
  await call(hub.url, { path: '/v1/deliveries/1-0.1' })
  await call(hub.url, {
    method: 'POST',
    path: '/v1/messages',
    headers: { 'idempotency-key': 'key-1' },
    body: { conversation: 'c1', sender: 'tests', to: [{ host: 'a' }], payload: 1 },
  })
  await call(hub.url, { method: 'POST', path: '/v1/sweeps/claims/run' })
  const { status, text } = await call(hub.url, { path: '/metrics' })
  expect(status, text).toBe(200)
  shown = metricsIn(text)
})
afterAll(async () => {
  await hub?.close()
  await record?.close()
  await store?.stop()
})

/** The metrics of a text in the format of Prometheus, those of Holdfast only. */
function metricsIn(text: string): Map<string, Metric> {
  const found = new Map<string, Metric>()
  for (const [, name = '', type = ''] of text.matchAll(/^# TYPE (holdfast_\w+) (\w+)$/gm)) {
    const labels = new Map<string, Set<string>>()
    const suffix = type === 'histogram' ? '(?:_bucket|_sum|_count)' : ''
    for (const [, inner = ''] of text.matchAll(new RegExp(`^${name}${suffix}(?:\\{(.*)\\})? `, 'gm'))) {
      for (const [, label = '', value = ''] of inner.matchAll(/(\w+)="([^"]*)"/g)) {
        if (label !== 'le') labels.set(label, (labels.get(label) ?? new Set()).add(value))
      }
    }
    found.set(name, { type, labels })
  }
  return found
}

/** The same from the page: under each heading `Type, unit; label: values; label.` stands first. */
function metricsOnPage(): Map<string, Metric> {
  const parts = [...page.matchAll(/^### `(\w+)`\n\n(\w+), (\w+)(?:; (.+))?\.$/gm)]
  return new Map(
    parts.map(([, name = '', type = '', , labels = '']) => [
      name,
      { type: type.toLowerCase(), labels: labelsIn(labels) },
    ]),
  )
}

/** `a`: `x`, `y`; or, where the values are open, `a`, `b`. */
function labelsIn(text: string): Map<string, Set<string>> {
  const words = (part: string) => [...part.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word)
  const [before = '', values] = text.split(': ')
  const [label = ''] = words(before)
  if (values !== undefined) return new Map([[label, new Set(words(values))]])
  return new Map(words(before).map((open) => [open, new Set<string>()]))
}

test('the page describes every metric that a hub shows, and no other', () => {
  const described = metricsOnPage()
  expect([...shown.keys()].length).toBeGreaterThan(12)
  expect([...described.keys()].sort()).toEqual([...shown.keys()].sort())
  expect(page.match(/^### /gm)).toHaveLength(described.size)
})

test('types and labels are those that a hub shows', () => {
  for (const [name, { type, labels }] of metricsOnPage()) {
    const live = shown.get(name)
    expect(type, name).toBe(live?.type)
    expect([...labels.keys()].sort(), name).toEqual([...(live?.labels.keys() ?? [])].sort())
    for (const [label, values] of labels) {
      if (values.size > 0) expect(values, `${name} ${label}`).toEqual(live?.labels.get(label))
    }
  }
})

test('the page says of every metric its unit, what it means, and what to do when it rises', () => {
  const parts = page.split(/^### /m).slice(1)
  for (const part of parts) {
    const [heading = '', facts = '', meaning = '', advice = ''] = part.trim().split('\n\n')
    const unit = /^\w+, (\w+)/.exec(facts)?.[1] ?? ''
    if (/_seconds`$/.test(heading)) expect(unit, heading).toBe('seconds')
    else expect(unit, heading).toMatch(/^\w+s$|^entries$/)
    expect(meaning, heading).toMatch(/^[A-Z].{30,}/)
    expect(advice, heading).toMatch(/^When it rises: .{20,}/)
  }
})
