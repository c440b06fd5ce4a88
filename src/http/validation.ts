import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import type { HoldfastError } from '../contract/errors.js'
import { check, type Fault } from '../contract/faults.js'
import { jsonPointer } from '../contract/json-source.js'
import { problem } from './problem.js'

const faultsAtMost = 20
const pointerAtMost = 400
/** The names of all settings, and a few that are none. */
const detailAtMost = 1000

const places: Readonly<Record<string, string>> & { readonly body: string } = {
  body: '#',
  querystring: 'query:',
  params: 'path:',
  headers: 'header:',
}

/** Checks parts of requests by their zod schemas; what they hold afterwards is what the schema made of them. */
export const compileValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  const place = places[httpPart ?? ''] ?? places.body
  return (data: unknown) => {
    const checked = check(schema, data)
    if (checked.ok) return { value: checked.value }
    if (place === places.body && (data === null || data === undefined)) return { error: noBody() }
    return { error: refusalOf(checked.faults, place) }
  }
}

function noBody(): HoldfastError {
  const detail = 'must be a JSON object; the body is empty or null'
  const { body: pointer } = places
  return problem('INVALID_ARGUMENT', `${pointer} ${detail}`, { pointer, errors: [{ pointer, detail }] })
}

/** All that is wrong with a request at once. */
function refusalOf(faults: readonly Fault[], place: string): HoldfastError {
  const errors = faults.slice(0, faultsAtMost).map(({ path, message }) => {
    return { pointer: cut(`${place}${jsonPointer(path)}`, pointerAtMost), detail: cut(message, detailAtMost) }
  })
  const first = errors[0] ?? { pointer: place, detail: 'is not of its form' }
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : ''
  return problem('INVALID_ARGUMENT', `${first.pointer} ${first.detail}${more}`, {
    pointer: first.pointer,
    errors,
  })
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}
