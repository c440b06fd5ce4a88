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
        <label key={name}>
          {label}
          {options === undefined ? (
            <input
              type="text"
              name={name}
              value={query.get(name) ?? ''}
              autoComplete="off"
              onChange={(event) => change(name, event.currentTarget.value)}
            />
          ) : (
            <select name={name} value={query.get(name) ?? ''} onChange={(event) => change(name, event.currentTarget.value)}>
              <option value="">any</option>
              {options.map((option) => (
                <option key={option} value={option}>
                  {option}
                </option>
              ))}
            </select>
          )}
        </label>
      ))}
      {isAny && (
        <button type="button" onClick={() => replaceQuery({})}>
          Clear
        </button>
      )}
    </form>
  )
}
