import { HoldfastError } from '../contract/errors.js'

/** A part of a path. @throws INVALID_ARGUMENT for an empty one, which would make another path */
export function part(text: string): string {
  if (text !== '') return escaped(text)
  throw new HoldfastError('INVALID_ARGUMENT', 'an id is empty')
}

/** @throws INVALID_ARGUMENT for half a surrogate pair, which has no UTF-8 form */
export function escaped(text: string): string {
  if (text.isWellFormed()) return encodeURIComponent(text)
  throw new HoldfastError('INVALID_ARGUMENT', `${JSON.stringify(text)} holds a lone surrogate`)
}

export function query(members: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  const text = given.map(([name, value]) => `${name}=${escaped(String(value))}`).join('&')
  return text === '' ? '' : `?${text}`
}
