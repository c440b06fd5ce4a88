import { useState } from 'preact/hooks'
import type { AuditView, SettingView, SweepView } from '../../contract/upkeep-views.js'
import { settingAct, sweepAct } from '../acts.js'
import { asRefusal, get, type Refusal } from '../api.js'
import { duration, number } from '../format.js'
import { mayAct } from '../hub.js'
import { ask } from '../parts/act.js'
import { Badge, Copy, Head, Note, Panel, RefusalNote } from '../parts/basics.js'
import { Table } from '../parts/table.js'
import { useResource } from '../resource.js'
import { sweepState } from './overview.js'

// What keeps a hub well: sweeps, the audit, and the tunables.

export function SweepsScreen() {
  const { value, refusal } = useResource('sweeps', async (signal) => {
    return (await get<{ sweeps: SweepView[] }>('v1/sweeps', {}, signal)).sweeps
  })
  return (
    <>
      <Head title="Sweeps">
        <p class="muted">What puts the hub right without being asked, and how its last run went.</p>
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      <Table
        caption="Sweeps"
        rows={value ?? []}
        keyOf={({ name }) => name}
        empty="Reading …"
        columns={[
          { name: 'Sweep', cell: ({ name }) => <strong>{name}</strong> },
          { name: 'State', cell: (sweep) => <Badge word={sweepState(sweep)} /> },
          { name: 'What it does', isWide: true, cell: (sweep) => <Meaning sweep={sweep} /> },
          {
            name: 'Every',
            isFigure: true,
            cell: ({ everyMs }) => (everyMs === 0 ? 'never' : duration(everyMs)),
          },
          {
            name: 'Succeeded',
            isFigure: true,
            cell: ({ ageMs }) => (ageMs === undefined ? 'never' : duration(ageMs)),
          },
          {
            name: 'Took',
            isFigure: true,
            cell: ({ durationMs }) => (durationMs === undefined ? '–' : duration(durationMs)),
          },
          {
            name: 'Found, repaired, left',
            isFigure: true,
            cell: ({ found = 0, repaired = 0, left = 0 }) =>
              `${number(found)}, ${number(repaired)}, ${number(left)}`,
          },
          { name: 'In all', isFigure: true, cell: ({ foundTotal = 0 }) => number(foundTotal) },
          ...(mayAct()
            ? [
                {
                  name: 'Run',
                  cell: ({ name, meaning }: SweepView) => (
                    <button type="button" onClick={() => ask(sweepAct(name, meaning))}>
                      Run<span class="hidden"> {name}</span>
                    </button>
                  ),
                },
              ]
            : []),
        ]}
      />
    </>
  )
}

function Meaning({ sweep: { meaning, notes, error, unfinished } }: { sweep: SweepView }) {
  return (
    <>
      {meaning}
      {error !== undefined && <div class="bad-text">failed: {error}</div>}
      {unfinished && <div class="muted">stopped at its bound; the next run goes on there</div>}
      {notes.length > 0 && (
        <details>
          <summary>What it found last</summary>
          <ul>
            {notes.map((note) => (
              <li key={note} class="mono">
                {note}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

export function AuditScreen() {
  const [audit, setAudit] = useState<AuditView | undefined>(undefined)
  const [refusal, setRefusal] = useState<Refusal | undefined>(undefined)
  const [isRunning, setRunning] = useState(false)
  const run = async () => {
    setRunning(true)
    setRefusal(undefined)
    try {
      setAudit(await get<AuditView>('v1/audit'))
    } catch (error) {
      setRefusal(asRefusal(error))
    }
    setRunning(false)
  }
  return (
    <>
      <Head
        title="Audit"
        aside={
          <button type="button" class="main" disabled={isRunning} onClick={run}>
            {isRunning ? 'Comparing …' : 'Run the audit'}
          </button>
        }
      >
        <p class="muted">
          Compares every row with every list and count, and changes nothing. It reads the whole record: in a
          large one the sweep audit does the same by and by.
        </p>
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      <div role="status">{audit !== undefined && <AuditResult audit={audit} />}</div>
    </>
  )
}

function AuditResult({ audit }: { audit: AuditView }) {
  const { conservation, deliveries, messages, disagreements, more } = audit
  const { recipients, byState, owed, pruned } = conservation
  const made = Object.values(byState).reduce((sum, each) => sum + each, 0)
  const isKept = recipients === made + owed + pruned
  return (
    <>
      <Panel title="Conservation">
        <Note tone={isKept ? 'good' : 'bad'}>
          <strong>{isKept ? '✓ Nothing is lost.' : '! The sum is not right.'}</strong> {number(recipients)}{' '}
          recipients accepted {isKept ? '=' : '≠'} {number(made)} deliveries + {number(owed)} owed by fan-outs
          + {number(pruned)} pruned.
        </Note>
        <p class="muted">
          {number(messages)} messages and {number(deliveries)} deliveries were looked at.
        </p>
      </Panel>
      <Panel title="Disagreements">
        {more && <Note tone="warn">! There are more than are told here.</Note>}
        <Table
          caption="Disagreements"
          rows={disagreements}
          keyOf={({ about, what }) => `${about} ${what}`}
          empty="✓ None: rows, lists and counts agree."
          columns={[
            { name: 'Code', cell: ({ code }) => <span class="mono">{code}</span> },
            { name: 'About', cell: ({ about }) => <span class="mono">{about}</span> },
            { name: 'What', isWide: true, cell: ({ what }) => what },
            { name: 'Look', cell: ({ look }) => <Copy label="Copy the line" text={look} /> },
          ]}
        />
      </Panel>
    </>
  )
}

export function SettingsScreen() {
  const { value, refusal } = useResource('settings', async (signal) => {
    return (await get<{ settings: SettingView[] }>('v1/config', {}, signal)).settings
  })
  return (
    <>
      <Head title="Settings">
        <p class="muted">Read at every call that needs one: a change works for every process at once.</p>
      </Head>
      {refusal !== undefined && <RefusalNote refusal={refusal} />}
      <Table
        caption="Settings"
        rows={value ?? []}
        keyOf={({ name }) => name}
        empty="Reading …"
        columns={[
          { name: 'Setting', cell: ({ name }) => <span class="mono">{name}</span> },
          {
            name: 'Value',
            isFigure: true,
            cell: ({ value: works, set, bad }) => (
              <>
                {works === undefined ? '' : number(works)}
                {bad && <div class="bad-text">“{set}” is no value of it</div>}
              </>
            ),
          },
          {
            name: 'Default',
            isFigure: true,
            cell: (setting) => (setting.default === undefined ? '' : number(setting.default)),
          },
          { name: 'Meaning', isWide: true, cell: ({ meaning }) => meaning },
          ...(mayAct()
            ? [
                {
                  name: 'Change',
                  cell: ({ name, value: works, meaning }: SettingView) =>
                    works !== undefined && (
                      <button type="button" onClick={() => ask(settingAct(name, works, meaning))}>
                        Set<span class="hidden"> {name}</span>
                      </button>
                    ),
                },
              ]
            : []),
        ]}
      />
    </>
  )
}
