import type { ComponentChildren } from 'preact'
import type { Pages, Resource } from '../resource.js'
import { RefusalNote } from './basics.js'

/** A column: its name, and the cell of a row. */
export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => ComponentChildren
  /** Figures stand at the right. */
  readonly isFigure?: boolean
  /** Takes the room that is left, and breaks lines. */
  readonly isWide?: boolean
}

/** Rows that can be marked, for acts on several. */
export interface Marking {
  readonly marked: ReadonlySet<string>
  readonly change: (marked: ReadonlySet<string>) => void
}

interface TableProps<Row> {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly empty: ComponentChildren
  readonly marking?: Marking | undefined
}

export function Table<Row>({ caption, columns, rows, keyOf, empty, marking }: TableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>
  const keys = rows.map(keyOf)
  const isAll = marking !== undefined && keys.every((key) => marking.marked.has(key))
  const toggle = (wanted: boolean, changed: readonly string[]) => {
    if (marking === undefined) return
    const marked = new Set(marking.marked)
    for (const key of changed) {
      if (wanted) marked.add(key)
      else marked.delete(key)
    }
    marking.change(marked)
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    // biome-ignore lint/a11y/useSemanticElements: it groups a table, and no fields of a form
    <div role="group" class="scroll" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {marking !== undefined && (
              <th scope="col" class="mark">
                <input
                  type="checkbox"
                  aria-label="Mark all rows of this page"
                  checked={isAll}
                  onChange={(event) => toggle(event.currentTarget.checked, keys)}
                />
              </th>
            )}
            {columns.map(({ name, isFigure }) => (
              <th scope="col" key={name} class={isFigure === true ? 'figure' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row)
            return (
              <tr key={key} class={marking?.marked.has(key) === true ? 'marked' : ''}>
                {marking !== undefined && (
                  <td class="mark">
                    <input
                      type="checkbox"
                      aria-label={`Mark ${key}`}
                      checked={marking.marked.has(key)}
                      onChange={(event) => toggle(event.currentTarget.checked, [key])}
                    />
                  </td>
                )}
                {columns.map(({ name, cell, isFigure, isWide }) => (
                  <td
                    key={name}
                    data-label={name}
                    class={isFigure === true ? 'figure' : isWide === true ? 'wide' : ''}
                  >
                    {cell(row)}
                  </td>
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** A page of a list as the hub answers it. */
export interface ListPage<Row> {
  readonly rows: readonly Row[]
  readonly cursor?: string | undefined
}

interface PagedProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly list: Resource<ListPage<Row>>
  readonly pages: Pages
}

/** A table of one page of a list, with the way on and back. */
export function PagedTable<Row>({ list, pages, ...table }: PagedProps<Row>) {
  const { value, refusal, isLoading } = list
  const cursor = value?.cursor
  const isPart = value !== undefined && value.rows.length === 0 && cursor !== undefined
  return (
    <div aria-busy={isLoading && value === undefined}>
      {refusal !== undefined && <RefusalNote refusal={refusal} title="Not read:" />}
      {value === undefined && refusal === undefined && <p class="empty">Reading …</p>}
      {value !== undefined && (
        <Table
          {...table}
          rows={value.rows}
          empty={isPart ? 'Nothing in the part of the list that was looked at so far.' : table.empty}
        />
      )}
      {(pages.number > 1 || cursor !== undefined) && (
        <nav class="pager" aria-label={`Pages of ${table.caption}`}>
          <button type="button" disabled={pages.number === 1} onClick={pages.first}>
            First
          </button>
          <button type="button" disabled={pages.number === 1} onClick={pages.back}>
            Back
          </button>
          <span>Page {pages.number}</span>
          <button
            type="button"
            disabled={cursor === undefined}
            onClick={() => cursor !== undefined && pages.next(cursor)}
          >
            {isPart ? 'Look further' : 'Next'}
          </button>
        </nav>
      )}
    </div>
  )
}
