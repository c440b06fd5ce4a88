import { useState } from 'preact/hooks'
import type { LogEntry } from '../../contract/log-filter.js'
import { get } from '../api.js'
import { number } from '../format.js'
import { Head, Time } from '../parts/basics.js'
import { Filters } from '../parts/filters.js'
import { type Column, type ListPage, PagedTable } from '../parts/table.js'
import { usePages, useResource } from '../resource.js'
import { link, place } from '../route.js'

const names = ['verb', 'actor', 'host', 'about'] as const

export function LogScreen() {
  const { query } = place.value
  const [isStill, setStill] = useState(false)
  const filter = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]))
  const key = `log ${JSON.stringify(filter)}`
  const pages = usePages(key)
  const isTail = pages.cursor === undefined && !isStill
  const list = useResource<ListPage<LogEntry>>(
    `${key} ${pages.cursor ?? ''}`,
    async (signal) => {
      const params = { ...filter, cursor: pages.cursor, limit: 50 }
      const { entries, cursor } = await get<{ entries: LogEntry[]; cursor?: string }>(
        'v1/log',
        params,
        signal,
      )
      return { rows: entries, cursor }
    },
    { isStill: !isTail },
  )
  return (
    <>
      <Head
        title="Log"
        aside={
          <button type="button" aria-pressed={isStill} onClick={() => setStill(!isStill)}>
            {isStill ? 'Follow' : 'Stand still'}
          </button>
        }
      >
        <p class="muted">
          One entry for each call that changed something, the newest first
          {isTail ? '; new ones come by themselves' : ''}.
        </p>
      </Head>
      <Filters
        fields={[
          { name: 'verb', label: 'Verbs, between commas' },
          { name: 'actor', label: 'Actor' },
          { name: 'host', label: 'Host' },
          { name: 'about', label: 'About an id' },
        ]}
      />
      <PagedTable
        caption="Log"
        list={list}
        pages={pages}
        keyOf={({ id }) => id}
        empty="No entry matches."
        columns={columns}
      />
    </>
  )
}

const columns: readonly Column<LogEntry>[] = [
  { name: 'Time', cell: ({ id }) => <Time at={Number(id.slice(0, id.indexOf('-')))} /> },
  { name: 'Verb', cell: ({ verb }) => <strong>{verb}</strong> },
  { name: 'Actor', cell: ({ actor }) => actor },
  { name: 'What', isWide: true, cell: (entry) => <What entry={entry} /> },
]

const idsAtMost = 3

function What({ entry: { changes, details, hosts } }: { entry: LogEntry }) {
  return (
    <>
      {changes.map(({ ids, from, to }) => (
        <div key={`${from} ${to} ${ids[0]}`}>
          {from === to ? to : `${from} → ${to}`}:{' '}
          {ids.slice(0, idsAtMost).map((id) => (
            <a key={id} class="mono" href={link(['deliveries', id.split('/')[0] ?? id])}>
              {id}{' '}
            </a>
          ))}
          {ids.length > idsAtMost && `and ${number(ids.length - idsAtMost)} more`}
        </div>
      ))}
      {Object.entries(details).map(([name, value]) => (
        <span key={name} class="detail">
          <span class="muted">{name}</span> {value}{' '}
        </span>
      ))}
      {hosts.length > 0 && (
        <span class="muted">woke {hosts === '*' ? 'all hosts' : hosts.slice(0, idsAtMost).join(', ')}</span>
      )}
    </>
  )
}
