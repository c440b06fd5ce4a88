import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { type SettingName, settings } from '../../src/contract/settings.js'
import { type HubSetServer, startSetServer } from '../../src/http/set-server.js'
import { sweepsOnDemand } from '../../src/sweeps/on-demand.js'
import { call } from '../support/http.js'
import { type OpenRecord, openRecord } from '../support/record.js'
import { startTestServer, type TestServer } from '../support/server.js'
import { commandsIn, problemOfCommand } from './commands.js'
import { type Expression, parsePromql } from './promql.js'

// The alert rules and the dashboard of docs/operations, against what a set of two hubs shows at /metrics.

const settingNames = Object.keys(settings) as SettingName[]
const folder = new URL('../../docs/operations/', import.meta.url)
const read = (name: string) => readFileSync(fileURLToPath(new URL(name, folder)), 'utf8')

const rule = z.strictObject({
  alert: z.string().regex(/^Holdfast[A-Z]\w+$/),
  expr: z.string(),
  for: z.string().regex(/^\d+[smh]$/),
  labels: z.strictObject({ severity: z.enum(['warning', 'critical']) }),
  annotations: z.strictObject({ summary: z.string().min(20), description: z.string().min(40) }),
})
type Rule = z.infer<typeof rule>
const ruleFile = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule) })),
})

const panel = z.looseObject({
  id: z.number(),
  type: z.enum(['row', 'stat', 'timeseries']),
  title: z.string().min(3),
  gridPos: z.object({ h: z.number(), w: z.number(), x: z.number(), y: z.number() }),
  description: z.string().min(5).optional(),
  fieldConfig: z.object({ defaults: z.looseObject({ unit: z.string() }) }).optional(),
  targets: z
    .array(
      z.looseObject({
        refId: z.string(),
        expr: z.string(),
        legendFormat: z.string(),
        datasource: z.unknown(),
      }),
    )
    .optional(),
})
const dashboard = z.looseObject({
  title: z.literal('Holdfast'),
  uid: z.string(),
  schemaVersion: z.number().min(39),
  templating: z.object({
    list: z.array(z.looseObject({ name: z.string(), type: z.string(), query: z.unknown() })),
  }),
  panels: z.array(panel),
})

const rules = ruleFile
  .parse(parse(read('alerts.yml'), { uniqueKeys: true }))
  .groups.flatMap((group) => group.rules)
const board = dashboard.parse(JSON.parse(read('grafana.json')))
const queries = board.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
)

let store: TestServer
let records: OpenRecord[]
let hubs: HubSetServer
/** Names of series, each with its labels and their values; and names of metrics with their types. */
let series: Map<string, Map<string, Set<string>>>
let types: Map<string, string>
let routes: string[]

beforeAll(async () => {
  store = await startTestServer()
  records = []
  for (const name of ['hf-0', 'hf-1']) records.push(await openRecord(store, { name }))
  hubs = await startSetServer({
    redis: store.url,
    hubs: ['hf-0', 'hf-1'],
    listen: { host: '127.0.0.1', port: 0 },
    sweeps: sweepsOnDemand,
    log: pino({ level: 'silent' }),
    limits: { lagMs: 0 },
  })
  const at = `${hubs.url}/hubs/hf-0`
  await call(at, { path: '/v1/deliveries/1-0.1' })
  await call(at, { method: 'POST', path: '/v1/sweeps/all/run' })
  for (const sweep of ['claims', 'retention', 'nodes', 'audit'])
    await call(at, { method: 'POST', path: `/v1/sweeps/${sweep}/run` })
  const { status, text } = await call(hubs.url, { path: '/metrics' })
  expect(status, text).toBe(200)
  types = new Map(
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]),
  )
  series = seriesIn(text)
  const document = await call<{ paths: Record<string, unknown> }>(at, { path: '/openapi.json' })
  routes = Object.keys(document.json.paths).map((path) => path.replaceAll(/\{(\w+)\}/g, ':$1'))
})
afterAll(async () => {
  await hubs?.close()
  for (const record of records ?? []) await record.close()
  await store?.stop()
})

function seriesIn(text: string): typeof series {
  const found: typeof series = new Map()
  for (const [, name = '', inner = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const labels = found.get(name) ?? new Map<string, Set<string>>()
    for (const [, label = '', value = ''] of inner.matchAll(/(\w+)="([^"]*)"/g))
      labels.set(label, (labels.get(label) ?? new Set()).add(value))
    found.set(name, labels)
  }
  return found
}

/** Labels that Prometheus itself puts on what it scrapes. */
const ofTargets = ['job', 'instance']
/** Labels whose values are not all there at once. */
const open = ['status', 'result', 'function', 'method']

/** What is wrong with an expression, by what is shown. */
function problemsOf(expression: Expression): string[] {
  const problems: string[] = []
  for (const { metric, matchers } of expression.selectors) {
    const labels = metric === 'up' ? new Map<string, Set<string>>() : series.get(metric)
    if (labels === undefined) {
      problems.push(`/metrics has no ${metric}`)
      continue
    }
    for (const { label, value } of matchers) {
      if (ofTargets.includes(label) || value.startsWith('$')) continue
      if (!labels.has(label)) problems.push(`${metric} has no label ${label}`)
      else if (label === 'route') {
        const strange = value.split('|').filter((each) => each !== 'none' && !routes.includes(each))
        problems.push(...strange.map((each) => `there is no route ${each}`))
      } else if (!open.includes(label)) {
        const strange = value.split('|').filter((each) => !labels.get(label)?.has(each))
        problems.push(...strange.map((each) => `${metric}: ${label} is never ${each}`))
      }
    }
  }
  const known = new Set([
    ...ofTargets,
    ...expression.selectors.flatMap(({ metric }) => [...(series.get(metric)?.keys() ?? [])]),
  ])
  for (const label of expression.grouped)
    if (!known.has(label)) problems.push(`by ${label}, which nothing has`)
  return problems
}

/** Counters are read as what they grew by, gauges as they are. */
function unitProblems({ selectors }: Expression): string[] {
  return selectors.flatMap(({ metric, range }) => {
    const base = metric.replace(/_(?:bucket|count|sum)$/, '')
    const type = types.get(metric) ?? types.get(base) ?? 'gauge'
    const grows = type === 'counter' || type === 'histogram'
    return grows && range === undefined ? [`${metric} is a ${type}, and taken as it stands`] : []
  })
}

describe('alerts.yml', () => {
  test.each(rules)('$alert uses what a hub shows, and says so', (given: Rule) => {
    const expression = parsePromql(given.expr)
    expect(problemsOf(expression)).toEqual([])
    expect(unitProblems(expression)).toEqual([])
    const { summary, description } = given.annotations
    for (const [, label = ''] of `${summary} ${description}`.matchAll(/\$labels\.(\w+)/g))
      expect(expression.resultLabels ?? ofTargets, label).toContain(label)
    for (const [, inner = ''] of `${summary} ${description}`.matchAll(/\{\{(.*?)\}\}/g))
      expect(inner).toMatch(/^ \$value \| humanize(Duration)? $|^ \$labels\.\w+ $/)
    // Ages are told as ages.
    if (/_seconds\b/.test(given.expr) && !/_count\b/.test(given.expr))
      expect(summary).toContain('humanizeDuration')
  })

  test.each(rules)(
    '$alert says what to do with a command that there is',
    ({ annotations: { description } }) => {
      const commands = commandsIn(description)
      for (const command of commands) expect(problemOfCommand(command), command).toBeUndefined()
      expect(commands.length + [...description.matchAll(/redis-cli/g)].length).toBeGreaterThan(0)
      for (const [path] of description.matchAll(/docs\/[\w/.-]+\.md/g))
        expect(existsSync(fileURLToPath(new URL(`../../${path}`, import.meta.url))), path).toBe(true)
      for (const [name] of description.matchAll(/(?<=`)(?:stale_after_ms|wait_replicas)(?=`)/g))
        expect(settingNames).toContain(name)
    },
  )

  it('has every name once, and an alarm on the oldest of each list', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    const lists = rules.flatMap(({ expr }) =>
      parsePromql(expr)
        .selectors.filter(({ metric }) => metric === 'holdfast_oldest_age_seconds')
        .flatMap(({ matchers }) => matchers.map(({ value }) => value)),
    )
    expect(lists.sort()).toEqual([...(series.get('holdfast_oldest_age_seconds')?.get('list') ?? [])].sort())
  })

  it('calls a sweep late at three of its intervals, at the earliest', () => {
    const { expr = '' } = rules.find(({ alert }) => alert === 'HoldfastSweepLate') ?? {}
    const late = new Map(
      [...expr.matchAll(/sweep="(\w+)"\}\) > (\d+)/g)].map(([, name = '', at = '']) => [name, Number(at)]),
    )
    const others = Number(/!~"[\w|]+"\}\) > (\d+)/.exec(expr)?.[1])
    const sweeps = settingNames.filter((name) => name.startsWith('sweep_'))
    expect(sweeps.length).toBeGreaterThan(10)
    for (const name of sweeps) {
      const sweep = name.slice('sweep_'.length, -'_ms'.length).replaceAll('_', '-')
      expect(late.get(sweep) ?? others, sweep).toBeGreaterThanOrEqual((3 * settings[name].default) / 1000)
    }
    expect([...late.keys()].sort()).toEqual(['audit', 'nodes', 'retention'])
  })

  it('calls a node blocked before it is taken for gone', () => {
    for (const { expr } of rules.filter(({ alert }) => alert.startsWith('HoldfastNodeBlocked')))
      expect(Number(/> (\d+)$/.exec(expr)?.[1])).toBeLessThan(settings.stale_after_ms.default / 1000)
  })
})

describe('grafana.json', () => {
  test.each(queries)('$title: $expr', ({ expr, legendFormat }) => {
    const expression = parsePromql(expr)
    expect(problemsOf(expression)).toEqual([])
    // Beside the one figure that is shown as a sum since the start.
    if (!expr.includes('(holdfast_lost_messages_total{')) expect(unitProblems(expression)).toEqual([])
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      expect(expression.resultLabels, label).toContain(label)
    for (const { matchers } of expression.selectors)
      expect(matchers).toContainEqual({ label: 'job', op: '=~', value: '$job' })
  })

  it('shows every metric of the page', () => {
    const shown = new Set(
      queries.flatMap(({ expr }) => parsePromql(expr).selectors.map(({ metric }) => metric)),
    )
    const missing = [...types.keys()].filter(
      (name) =>
        name.startsWith('holdfast_') &&
        ![name, `${name}_bucket`, `${name}_count`].some((each) => shown.has(each)),
    )
    expect(types.size).toBeGreaterThan(20)
    expect(missing).toEqual([])
  })

  it('has units that fit, and ids and places of its own for each panel', () => {
    for (const { title, fieldConfig, targets = [] } of board.panels) {
      const unit = fieldConfig?.defaults.unit
      for (const { expr } of targets) {
        const isTime = /_seconds(_bucket)?\{/.test(expr)
        expect(unit === 's', title).toBe(isTime)
        if (expr.includes('_bytes{')) expect(unit, title).toBe('bytes')
        if (unit === 'ops' || unit === 'reqps') expect(expr, title).toContain('rate(')
      }
    }
    expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length)
    const places = board.panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)
    expect(new Set(places).size).toBe(places.length)
    for (const { gridPos } of board.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
  })

  it('lets the data source and the hub be chosen, and asks the chosen one', () => {
    expect(board.templating.list.map(({ name, type }) => `${name} ${type}`)).toEqual([
      'datasource datasource',
      'job query',
      'hub query',
    ])
    for (const { targets = [] } of board.panels)
      for (const { datasource } of targets)
        expect(datasource).toEqual({ type: 'prometheus', uid: '$datasource' })
  })
})

test('docs/metrics.md names both', () => {
  const page = readFileSync(fileURLToPath(new URL('../../docs/metrics.md', import.meta.url)), 'utf8')
  expect(page).toContain('(operations/alerts.yml)')
  expect(page).toContain('(operations/grafana.json)')
})

describe('the reader of PromQL refuses', () => {
  test.each([
    ['sum(up)', /not by/],
    ['rate(up)', /another kind/],
    ['up[5m]', /no vector/],
    ['up{job="a"} >', /too early/],
    ['foo(up)', /no function/],
    ['up{job=a}', /matcher/],
    ['max by (job) (up) > max by (hub) (up)', /other labels/],
    ['histogram_quantile(99, sum by (le) (up))', /quantile/],
    ['up; up', /not PromQL/],
  ])('%s', (text, why) => {
    expect(() => parsePromql(text)).toThrow(why)
  })
})
