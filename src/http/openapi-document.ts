import { answerMeanings, type Meanings, requestMeanings } from './openapi-meanings.js'

/** A JSON schema, as far as this folder looks into it. */
export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly [keyword: string]: unknown
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

export type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>

export interface Answer {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>
  readonly content?: Content
}

export interface RequestBody {
  readonly required: boolean
  readonly content: Content
}

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: RequestBody
  readonly responses: Readonly<Record<string, Answer>>
  /** Empty where no identity is asked for. */
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  /** Who may: roles of principals. */
  readonly 'x-roles': readonly string[]
}

/** What this hub says of itself in OpenAPI 3.1, as far as this folder looks into it. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly info: Readonly<Record<string, unknown>>
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>
    readonly [kind: string]: unknown
  }
  readonly [member: string]: unknown
}

/** The document as the plugins make it, put right where they cannot know better. */
export function tidied(made: OpenApiDocument): OpenApiDocument {
  const paths = Object.entries(made.paths).map(([path, methods]) => {
    return [path, mapValues(methods, (operation) => tidiedOperation(operation, path))]
  })
  const schemas = Object.entries(made.components.schemas).map(([name, schema]) => {
    const sent = name.endsWith(sentForm)
    const words = sent ? requestMeanings : answerMeanings
    return [name, explained(schema, words, sent ? name.slice(0, -sentForm.length) : name)]
  })
  return withNeededSchemas({
    ...made,
    paths: Object.fromEntries(paths),
    components: { ...made.components, schemas: Object.fromEntries(schemas) },
  })
}

/** Says of every member what it means, where its schema does not. */
function explained(schema: JsonSchema, meanings: Meanings, object: string): JsonSchema {
  const { properties, items, anyOf, oneOf, additionalProperties: others } = schema
  const same = (inner: JsonSchema) => explained(inner, meanings, object)
  const member = (inner: JsonSchema, name: string): JsonSchema => {
    const meaning = meanings[`${object}.${name}`] ?? inner.description ?? meanings[name]
    const whole = explained(inner, meanings, name)
    return meaning === undefined ? whole : { ...whole, description: meaning }
  }
  return {
    ...schema,
    ...(properties && { properties: mapValues(properties, member) }),
    ...(items && { items: same(items) }),
    ...(anyOf && { anyOf: anyOf.map(same) }),
    ...(oneOf && { oneOf: oneOf.map(same) }),
    ...(typeof others === 'object' && { additionalProperties: same(others as JsonSchema) }),
  }
}

function tidiedOperation(operation: Operation, path: string): Operation {
  const { parameters, requestBody, responses, ...rest } = operation
  const takesKey = parameters?.some(({ name }) => name === 'idempotency-key') ?? false
  return {
    ...rest,
    ...(parameters && { parameters: parameters.map((each) => tidiedParameter(each, path)) }),
    ...(requestBody && { requestBody: tidiedBody(requestBody, rest.operationId) }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, answer]) => [
        status,
        tidiedAnswer(answer, headersOf(status, takesKey), rest.operationId),
      ]),
    ),
  }
}

/** Fastify knows headers in small letters; they are written as people know them. */
function tidiedParameter(parameter: Parameter, path: string): Parameter {
  const { name: own } = parameter
  const before = new RegExp(`(\\w+)/\\{${own}\\}`).exec(path)?.[1]
  const description = requestMeanings[`${before}/{${own}}`] ?? parameter.description ?? requestMeanings[own]
  if (parameter.in !== 'header') return { ...parameter, ...(description !== undefined && { description }) }
  const name = own.replace(/id$|(?<=^|-)[a-z]/g, (letters) =>
    letters === 'id' ? 'ID' : letters.toUpperCase(),
  )
  return { ...parameter, name }
}

/** A body that may be null may be left out; nobody needs to send the null. */
function tidiedBody({ content }: RequestBody, operationId: string): RequestBody {
  const optional = Object.values(content).some(({ schema }) => withoutNull(schema) !== schema)
  return {
    required: !optional,
    content: mapValues(content, ({ schema }) => ({
      schema: explained(withoutNull(schema), requestMeanings, operationId),
    })),
  }
}

function withoutNull(schema: JsonSchema): JsonSchema {
  const others = schema.anyOf?.filter(({ type }) => type !== 'null')
  const [only] = others ?? []
  return only !== undefined && others?.length === 1 ? only : schema
}

function tidiedAnswer(answer: Answer, headers: Answer['headers'], operationId: string): Answer {
  const { description, content } = answer
  return {
    description: description === 'Default Response' ? 'Done' : description,
    ...(content && {
      content: mapValues(content, ({ schema }) => ({
        schema: explained(schema, answerMeanings, operationId),
      })),
    }),
    ...(headers && { headers }),
  }
}

function headersOf(status: string, takesKey: boolean): Answer['headers'] {
  if (status === '200' && takesKey) {
    const schema = { type: 'string', enum: ['true'] }
    return { 'Idempotency-Replayed': { description: '`true`: the key was known', schema } }
  }
  if (!/^[45]XX$/.test(status)) return undefined
  const description = 'Seconds after which it may be tried again, where that can help'
  return { 'Retry-After': { description, schema: { type: 'integer', minimum: 0 } } }
}

const schemaPath = '#/components/schemas/'
/** What the plugin ends the names of schemas with that are sent to the hub. */
const sentForm = 'Input'

/**
 * Keeps the schemas that something names. Each comes in two forms, as sent (`NameInput`) and as answered
 * (`Name`): where only the first is used, it takes the plain name.
 */
function withNeededSchemas(document: OpenApiDocument): OpenApiDocument {
  const { schemas } = document.components
  const needed = new Set<string>()
  const look = (value: unknown) => {
    for (const name of referencesIn(value)) {
      if (needed.has(name)) continue
      needed.add(name)
      look(schemas[name])
    }
  }
  look(document.paths)
  const nameOf = (name: string) => {
    const plain = name.endsWith(sentForm) ? name.slice(0, -sentForm.length) : name
    return needed.has(plain) ? name : plain
  }
  const kept = [...needed].map((name) => [nameOf(name), schemas[name]] as const)
  kept.sort(([one], [other]) => (one < other ? -1 : 1))
  const whole = { ...document, components: { ...document.components, schemas: Object.fromEntries(kept) } }
  return JSON.parse(JSON.stringify(whole), (member, value: unknown) =>
    member === '$ref' && typeof value === 'string' && value.startsWith(schemaPath)
      ? `${schemaPath}${nameOf(value.slice(schemaPath.length))}`
      : value,
  ) as OpenApiDocument
}

function referencesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([member, inner]) => {
    const refers = member === '$ref' && typeof inner === 'string' && inner.startsWith(schemaPath)
    return refers ? [inner.slice(schemaPath.length)] : referencesIn(inner)
  })
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  map: (value: From, name: string) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value, name)]))
}
