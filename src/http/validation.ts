import type { FastifySchemaCompiler } from 'fastify'
import type { z } from 'zod'
import type { HoldfastError } from '../contract/errors.js'
import { jsonPointer } from '../contract/json-source.js'
import { problem } from './problem.js'

type Issue = z.core.$ZodIssue

const issuesAtMost = 20
const pointerAtMost = 400
const detailAtMost = 300

const places: Readonly<Record<string, string>> = {
  body: '#',
  querystring: 'query:',
  params: 'path:',
  headers: 'header:',
}

/** Checks parts of requests by their zod schemas; what they hold afterwards is what the schema made of them. */
export const compileValidator: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart }) => {
  const place = places[httpPart ?? ''] ?? '#'
  return (data: unknown) => {
    const result = schema.safeParse(data)
    return result.success ? { value: result.data } : { error: refusalOf(result.error.issues, place) }
  }
}

/** All that is wrong with a request at once. Values are not echoed here: they may hold secrets or payloads. */
function refusalOf(issues: readonly Issue[], place: string): HoldfastError {
  const errors = issues.slice(0, issuesAtMost).map((issue) => {
    const { path, message } = closest(issue)
    return { pointer: cut(`${place}${jsonPointer(path)}`, pointerAtMost), detail: cut(message, detailAtMost) }
  })
  const first = errors[0] ?? { pointer: place, detail: 'is not of its form' }
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  return problem('INVALID_ARGUMENT', `${first.pointer} ${first.detail}${more}`, {
    pointer: first.pointer,
    errors,
  })
}

/** Of a value with several forms: what is wrong by the one form that it comes closest to, where there is one. */
function closest(issue: Issue): Pick<Issue, 'path' | 'message'> {
  if (issue.code !== 'invalid_union') return issue
  const [best, next] = issue.errors.toSorted((one, other) => one.length - other.length)
  const [only, second] = best ?? []
  if (only === undefined || second !== undefined || next?.length === 1) return issue
  return { path: [...issue.path, ...only.path], message: only.message }
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}
