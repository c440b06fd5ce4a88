import { computed, signal } from '@preact/signals'

/** Where the page is: `#/deliveries/<id>?tab=x`. Everything that can be linked to stands in it. */
export interface Place {
  /** The parts of the path, decoded. */
  readonly parts: readonly string[]
  readonly query: URLSearchParams
}

const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

export const place = computed<Place>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?', 2)
  return { parts: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) }
})

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The link to a place. */
export function link(
  parts: readonly string[],
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') given.set(name, value)
  const text = given.toString()
  return `#/${parts.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

export function go(to: string): void {
  location.hash = to
}

/** Other filters, same screen: no step of the browser's history for each letter. */
export function replaceQuery(query: Readonly<Record<string, string | undefined>>): void {
  history.replaceState(null, '', link(place.value.parts, query))
  hash.value = location.hash
}
