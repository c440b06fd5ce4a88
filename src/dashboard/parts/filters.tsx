import { place, replaceQuery } from '../route.js'

/** A filter that stands in the address of the screen. */
export interface FilterField {
  readonly name: string
  readonly label: string
  readonly options?: readonly string[]
}

/** Filters of a list: they take effect when one is left, or with Enter. */
export function Filters({ fields }: { fields: readonly FilterField[] }) {
  const { query } = place.value
  const change = (name: string, value: string) => {
    const all = Object.fromEntries(place.value.query)
    replaceQuery({ ...all, [name]: value.trim() })
  }
  const isAny = fields.some(({ name }) => (query.get(name) ?? '') !== '')
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      {fields.map(({ name, label, options }) => (
        <div key={name} class="filter">
          <label for={`filter-${name}`}>{label}</label>
          {options === undefined ? (
            <input
              id={`filter-${name}`}
              type="text"
              name={name}
              value={query.get(name) ?? ''}
              autoComplete="off"
              onChange={(event) => change(name, event.currentTarget.value)}
            />
          ) : (
            <select
              id={`filter-${name}`}
              name={name}
              value={query.get(name) ?? ''}
              onChange={(event) => change(name, event.currentTarget.value)}
            >
              <option value="">any</option>
              {options.map((option) => (
                <option key={option} value={option}>
                  {option}
                </option>
              ))}
            </select>
          )}
        </div>
      ))}
      {isAny && (
        <button type="button" onClick={() => replaceQuery({})}>
          Clear
        </button>
      )}
    </form>
  )
}
