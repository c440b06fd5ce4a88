// Writes docs/http.md from the OpenAPI document of the last build (run `npm run build` first). A test compares
// the page with the document that src/ makes.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { cell, padded, table } from './errors-page.mjs'

/**
 * @typedef {import('../src/http/openapi-document.ts').OpenApiDocument} OpenApiDocument
 * @typedef {import('../src/http/openapi-document.ts').Operation} Operation
 * @typedef {import('../src/http/openapi-document.ts').Answer} Answer
 * @typedef {import('../src/http/openapi-document.ts').JsonSchema} JsonSchema
 * @typedef {(schema: JsonSchema) => JsonSchema} Resolve
 */

/**
 * A member of an object, with its path from the outermost one.
 * @typedef {object} Member
 * @property {string} path
 * @property {string} must
 * @property {JsonSchema} schema
 * @property {string} only where it belongs to some of several forms: which
 */

const head = `# The hub over HTTP

<!-- Written by scripts/http-page.mjs from the OpenAPI document: change it there, in src/http/ or in src/contract/wire*.ts. -->

\`holdfast serve\` answers what follows; every process of a hub answers the same. The same description for programs is at \`/openapi.json\` (OpenAPI 3.1), and for a browser at \`/docs\`. \`holdfast/client\` is a client for all of it, and one can be generated from the description: every route has a stable \`operationId\`.

Bodies are JSON (\`Content-Type: application/json\`). Times in answers are Unix milliseconds by the clock of Redis. Requests with a member that the route does not know are refused; answers may gain members in later versions, so a client should ignore those that it does not know. An id is 1 to 255 characters of printable ASCII; where one stands in a path it is percent-encoded, a slash in it too.

## Who may

Every route but the public ones wants a principal (\`holdfast principal add\`). It is named by a token, \`Authorization: Bearer <token>\`, or over HTTPS by the client certificate that the principal pins. A browser that logged in (\`POST /v1/login\`) names it by a cookie, for the page of the hub alone: [security.md](security.md#browsers). What a principal may do is its role:

| role | what it may |
|---|---|
| \`producer\` | send as itself, or as any sender where it was added so; see its own messages |
| \`node\` | everything a node does, for its one host and the directories it was added with; see the deliveries of that host; open, close and see sessions of that host and those directories |
| \`viewer\` | see everything but principals, and payloads only while the setting \`viewer_payloads\` is 1; change nothing |
| \`operator\` | everything |

No principal, or one that is not known or was revoked, is \`UNAUTHENTICATED\` (401); one without the right is \`FORBIDDEN\` (403). A revocation also ends what is under way for that principal: polls that wait, and event streams.

As long as no principal was ever added, a hub on a loopback address takes every local program, and its own page, for the operator. The header \`Holdfast-Actor\` (percent-encoded) then says whom the record shall name. Requests that come by way of a proxy, from the web page of another origin, or for another host name are refused all the same, and a hub on any other address does not start without a principal.

## Problems

What is not done is answered as \`application/problem+json\` (RFC 9457): see [Problem](#problem) for its members. \`code\` is for programs, \`detail\` says what is wrong and \`next\` what to do; [errors.md](errors.md) lists every code. A malformed request is answered with every fault of its body (or else of its query, path or headers) at once, in \`errors\`, each with a pointer: \`#/to/0/host\` into the body, \`query:/limit\`, \`path:/id\` or \`header:/idempotency-key\` elsewhere. Answers that are worth waiting for carry \`Retry-After\`, in seconds.

\`\`\`json
{
  "type": "urn:holdfast:problem:no_route",
  "title": "a recipient is a session never seen, or a host that never joined while open_hosts is 0",
  "status": 422,
  "code": "NO_ROUTE",
  "detail": "session agent-7 was never opened; nothing was accepted",
  "next": "correct the recipient; nothing was accepted",
  "requestId": "989a2e98-c63a-4889-88f6-63096b3ae74b"
}
\`\`\`

After \`STORE_UNAVAILABLE\`, \`DEADLINE_EXCEEDED\`, \`INTERNAL\` or a connection that broke, nobody knows whether the call was done: repeat it as it was. Every call can be repeated (next section).

Calls on several items (\`mirror\`, \`ack\`, \`refuse\`, \`begin\`, reports) answer 200 with one result for each, in order. An item that was refused has \`ok: false\`, its \`code\` and \`next\`, and the others are not touched by that.

## Repeating a call

- **A message** has its key in the header \`Idempotency-Key\`, for as long as the message is kept (\`retention_ms\`, counted from when all of it is settled). The first call answers 201. A repeat answers 200 with \`Idempotency-Replayed: true\` and the same ids, their states as they are now. The same key with another conversation, sender, parent, set of recipients or payload is \`IDEMPOTENCY_MISMATCH\` (422), and nothing is changed.
- **A claim** has \`request\`, a number that grows within an incarnation. Until it is answered the node repeats it and gets the same deliveries; a lower one is \`STALE_REQUEST\`.
- **A begin** has \`grant\`: from the same process the same grant is answered with the same attempt. A later process of the node, whose handler is declared idempotent, begins again under the grant that it finds open, with \`idempotent: true\`: the same attempt, \`replay: true\`.
- **A report** has \`key\`, one for each thing that is reported. A repeat is answered with what was recorded; the same key with other content is \`IDEMPOTENCY_MISMATCH\`.
- **A close** of a session names its epoch: a repeat gets the first answer, and the close of an earlier owner is \`STALE_EPOCH\`. Every opening makes a new epoch. A rehome that was cut is an obligation: the same call completes it, and so does a hub that starts.
- **A resolution** counts once: a second one is \`ALREADY_SETTLED\`, or \`NOT_UNKNOWN\` for a delivery.
- \`mirror\` and \`ack\` by the same owner under the same epoch are answered as the first time. Joins, heartbeats, fences and settings may be sent again as they are.

## Payloads

The executor gets the payload byte for byte. It is sent in one of two ways:

- \`payload\`, any JSON value: it is kept as its exact source text, without the white space around it. No digit, escape or order of members changes. Its content type is \`application/json\`.
- \`payloadBase64\`, with \`contentType\`: everything else.

The whole body must be valid JSON in UTF-8: one member name twice in an object, invalid bytes, a byte order mark or more than 64 levels are refused.

In a claim's answer a payload that is JSON stands as \`payload\`, again as its exact text, and any other as \`payloadBase64\`. A JSON parser that turns numbers into floating point, as most do, loses digits when it reads \`payload\`: a node that needs the bytes asks with \`payloads: "base64"\` and finds all of them in \`payloadBase64\`. \`sha256\` is the digest of the bytes.

\`result\` and \`errorJson\` of a report are kept as their exact text too. Where attempts are shown, they are a string that holds that text.

## Waiting

\`waitMs\`, up to 60000, makes two calls wait on the hub instead of being asked again and again: a message until all its deliveries are settled, a claim until there is something to claim. They answer at once when it happens, and with what there is (a message as it stands, an empty claim) when the time is up or the hub shuts down. A client that goes away loses nothing. Its own time limit must be longer than \`waitMs\`.

## Pages

Lists answer up to \`limit\` entries (100 unless asked otherwise, at most 1000) and a \`cursor\` while there may be more: send it with the next call, and nothing else changed. A page may be empty and still have a cursor. Cursors are opaque. A list is read as it is at each call: what moves meanwhile may be missed or seen twice.

## The event stream

\`GET /v1/events\` is the log as server-sent events: one for each call that changed something, in order, for as long as the connection stands. Without a position it begins now; the header \`Last-Event-ID\` (browsers send it by themselves), or \`lastEventId\` in the query, begins after that event, \`0-0\` with the oldest that is kept. A comment every 15 seconds keeps the connection alive.

\`\`\`text
id: 1795981036125-0
event: accept
data: {"at":1795981036125,"verb":"accept","actor":"billing","changes":[],"hosts":["build-1"],"details":{…}}
\`\`\`

\`verb\`, \`actor\`, \`host\` and \`about\` choose among the entries, here and in \`GET /v1/log\`, which has the same entries by pages, the newest first. Whoever only wants to know that something changed asks with \`digestMs\`: then there is at most one event in so many milliseconds, \`changes\`, which says how many entries of which verb there were since the last one, and on which hosts something became runnable. Its id is that of the last of them.

The log is capped (\`log_length\`). Where it no longer reaches back to the position, the first event is \`gap\`, with the position that was asked for (\`after\`) and the entry with which the log goes on (\`first\`): what lies between is lost to this stream, not to the record, so read the lists again.
`

const many = { producer: 'producers', node: 'nodes', viewer: 'viewers', operator: 'operators' }

/**
 * The page for a document, in the document's order of tags and routes.
 * @param {OpenApiDocument} document
 */
export function httpPage(document) {
  /** @type {Resolve} */
  const resolve = (schema) => document.components.schemas[nameOf(schema) ?? ''] ?? schema
  const routes = operationsOf(document)
  const bodies = namesIn(routes.map(({ operation }) => bodyOf(operation)))
  const shared = new Set(bodies.filter((name, at) => bodies.indexOf(name) !== at))
  const sections = document.tags.map(({ name, description }) => {
    const parts = routes
      .filter(({ operation }) => operation.tags.includes(name))
      .map((route) => routePart(route, shared, resolve))
    return `## ${name[0]?.toUpperCase()}${name.slice(1)}\n\n${description}.\n\n${parts.join('\n')}`
  })
  const answered = reachedFrom(
    routes.map(({ operation }) => operation.responses),
    resolve,
  )
  const forms = [...new Set([...answered, ...shared])].sort().map((name) => {
    return formPart(name, shared.has(name), resolve)
  })
  return `${padded(head)}
${sections.join('\n')}
## Forms

What several routes take or answer.

${forms.join('\n')}`
}

/** @param {string} name @param {boolean} isBody @param {Resolve} resolve */
function formPart(name, isBody, resolve) {
  const members = membersOf(resolve({ $ref: `${schemaPath}${name}` }), resolve)
  const rows = members.map(({ path, must, schema, only }) => [
    `\`${path}\``,
    isBody ? must : must.replace('yes', 'always'),
    formOf(schema),
    meaningOf(schema, only),
  ])
  return `### ${name}\n\n${table([['member', isBody ? 'must' : 'there', 'form', 'meaning'], ...rows])}`
}

/** @param {OpenApiDocument} document */
function operationsOf({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      title: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  )
}

const places = ['path', 'query', 'header']

/**
 * @param {{ title: string, operation: Operation }} route
 * @param {ReadonlySet<string>} shared forms that are described at the end
 * @param {Resolve} resolve
 */
function routePart({ title, operation }, shared, resolve) {
  const { summary, operationId, parameters = [], requestBody, responses } = operation
  const roles = operation['x-roles'].map((role) => many[/** @type {keyof typeof many} */ (role)])
  const who = roles.length === 0 ? 'Public' : `For ${listed(roles, 'and')}`
  const rows = parameters
    .toSorted((one, other) => places.indexOf(one.in) - places.indexOf(other.in))
    .map(({ in: place, name, required, description = '', schema }) => [
      place,
      `\`${name}\``,
      required === true ? 'yes' : '',
      formOf(schema),
      worded(description),
    ])
  const body = bodyOf(operation)
  if (shared.has(nameOf(body) ?? '')) rows.push(['body', '', 'yes', formOf(body), ''])
  else {
    for (const { path, must, schema, only } of membersOf(resolve(body), resolve)) {
      rows.push(['body', `\`${path}\``, must, formOf(schema), meaningOf(schema, only)])
    }
  }
  const takes = rows.length === 0 ? '' : `${table([['in', 'member', 'must', 'form', 'meaning'], ...rows])}\n`
  const mayBeLeftOut = requestBody?.required === false ? ' The body may be left out.' : ''
  const answers = Object.entries(responses).filter(([status]) => !/XX$/.test(status))
  return `### \`${title}\`

${summary}.

${who}; \`${operationId}\`.${mayBeLeftOut}

${takes}${answers.map((answer) => answerLine(answer)).join('')}`
}

/** @param {Operation} operation @returns {JsonSchema} */
function bodyOf({ requestBody }) {
  return requestBody?.content['application/json']?.schema ?? {}
}

/** @param {[status: string, answer: Answer]} answer */
function answerLine([status, { description, content = {}, headers = {} }]) {
  const bodies = Object.entries(content).map(([type, { schema }]) => {
    const form = Object.keys(schema.properties ?? {}).length > 0 ? inlineForm(schema) : formOf(schema)
    return type === 'application/json' ? form : `\`${type}\`, ${form}`
  })
  const withHeaders = Object.keys(headers).map((name) => `header \`${name}\``)
  const what = description === 'Done' ? '' : ` (${description})`
  return `- ${status}${what}${bodies.length + withHeaders.length > 0 ? ': ' : ''}${[...bodies, ...withHeaders].join('; ')}\n`
}

/** @param {JsonSchema} schema */
function inlineForm({ properties = {}, required = [] }) {
  const members = Object.entries(properties).map(([name, schema]) => {
    return `\`${name}\` (${required.includes(name) ? '' : 'may be absent; '}${formOf(schema)})`
  })
  return listed(members, 'and')
}

/** What a schema is, in few words. @param {JsonSchema} schema @returns {string} */
function formOf(schema) {
  const name = nameOf(schema)
  if (name !== undefined) return `[${name}](#${name.toLowerCase()})`
  const several = schema.anyOf ?? schema.oneOf
  if (several !== undefined) {
    const forms = new Set(several.map(formOf))
    return listed([...forms], 'or')
  }
  if (schema['const'] !== undefined) return `\`${schema['const']}\``
  if (Array.isArray(schema['enum'])) {
    return listed(
      schema['enum'].map((word) => `\`${word}\``),
      'or',
    )
  }
  if (schema.type === 'array') return `list of ${formOf(schema.items ?? {})}`
  if (schema.type === 'integer' || schema.type === 'number') return numberForm(schema)
  if (schema.type === 'string') return textForm(schema)
  if (schema.type === 'object') return objectForm(schema)
  return schema.type ?? 'any JSON'
}

/** @param {JsonSchema} schema */
function objectForm({ properties, additionalProperties: others }) {
  const names = Object.keys(properties ?? {})
  if (names.length > 0) return `{ ${names.join(', ')} }`
  return isSchema(others) && Object.keys(others).length > 0 ? `object of ${formOf(others)}` : 'object'
}

/** @param {JsonSchema} schema */
function numberForm({ type = '', minimum, maximum }) {
  if (maximum !== undefined) return `${type}, ${minimum ?? 'any'} to ${maximum}`
  return minimum === 1 ? `${type} from 1` : type
}

const hostPattern = '^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$'

/** @param {JsonSchema} schema */
function textForm({ format, pattern, maxLength }) {
  if (format === 'date-time') return 'RFC 3339 time'
  if (format === 'base64') return 'base64'
  if (pattern === hostPattern) return 'host name'
  return maxLength === 255 ? 'id' : 'text'
}

/** Text in a cell, in which nothing reads as a tag. @param {string} text */
function worded(text) {
  return cell(text.replace(/`[^`]*`|</g, (found) => (found === '<' ? '\\<' : found)))
}

/** @param {JsonSchema} schema @param {string} only */
function meaningOf({ description = '', propertyNames: names }, only) {
  const words = isSchema(names) && Array.isArray(names['enum']) ? names['enum'] : []
  const which =
    words.length === 0
      ? ''
      : `names: ${listed(
          words.map((word) => `\`${word}\``),
          'and',
        )}`
  return worded([only === '' ? '' : `with ${only}`, description, which].filter(Boolean).join('; '))
}

/**
 * The members of an object with those of the objects in it, not those of answers that have a form of their own.
 * @param {JsonSchema} schema
 * @param {Resolve} resolve
 * @returns {Member[]}
 */
function membersOf(schema, resolve, before = '') {
  if (
    schema.type === 'object' &&
    schema.properties === undefined &&
    isSchema(schema['additionalProperties'])
  ) {
    if (before !== '') return []
    return [
      {
        path: '<name>',
        must: '',
        schema: { ...schema['additionalProperties'], ...described(schema) },
        only: '',
      },
    ]
  }
  const { properties = {}, required = [] } = schema
  return Object.entries(properties).flatMap(([name, each]) => {
    const path = `${before}${name}`
    const own = { path, must: required.includes(name) ? 'yes' : '', schema: each, only: '' }
    return [own, ...innerOf(each, resolve, path)]
  })
}

/** @param {JsonSchema} schema */
function described({ description = '', propertyNames }) {
  return { description, propertyNames }
}

/** @param {JsonSchema} schema @param {Resolve} resolve @param {string} path @returns {Member[]} */
function innerOf(schema, resolve, path) {
  if (schema.$ref !== undefined) return []
  if (schema.items !== undefined) return innerOf(schema.items, resolve, `${path}[]`)
  const variants = schema.anyOf ?? schema.oneOf
  return variants === undefined
    ? membersOf(schema, resolve, `${path}.`)
    : merged(variants.map((each) => membersOf(resolve(each), resolve, `${path}.`)))
}

/**
 * The members of several forms of one thing, each once.
 * @param {readonly (readonly Member[])[]} variants
 * @returns {Member[]}
 */
function merged(variants) {
  const paths = new Set(variants.flatMap((members) => members.map(({ path }) => path)))
  return [...paths].flatMap((path) => {
    const having = variants.filter((members) => members.some((member) => member.path === path))
    const found = having.flatMap((members) => members.filter((member) => member.path === path))
    const [first] = found
    if (first === undefined) return []
    const forms = found.map(({ schema }) => schema)
    const isKind = forms.every((schema) => schema['const'] !== undefined)
    const kinds = having.flatMap((members) =>
      members.flatMap(({ schema }) => (schema['const'] === undefined ? [] : [`\`${schema['const']}\``])),
    )
    const everywhere = having.length === variants.length
    return [
      {
        ...first,
        must: everywhere ? first.must : kinds.length > 0 ? first.must : 'one of them',
        schema: isKind ? { ...described(first.schema), anyOf: forms } : first.schema,
        only: everywhere ? '' : listed(kinds, 'or'),
      },
    ]
  })
}

/** Names of schemas that values name, and those that these name. @param {unknown} value @param {Resolve} resolve */
function reachedFrom(value, resolve) {
  const found = new Set(namesIn(value))
  for (const name of found) {
    for (const inner of namesIn(resolve({ $ref: `${schemaPath}${name}` }))) found.add(inner)
  }
  return found
}

/** @param {unknown} value @returns {string[]} */
function namesIn(value) {
  if (!isSchema(value)) return []
  const name = nameOf(value)
  return name !== undefined ? [name] : Object.values(value).flatMap(namesIn)
}

const schemaPath = '#/components/schemas/'

/** @param {JsonSchema} schema */
function nameOf({ $ref }) {
  return typeof $ref === 'string' ? $ref.replace(schemaPath, '') : undefined
}

/** @param {unknown} value @returns {value is JsonSchema} */
function isSchema(value) {
  return typeof value === 'object' && value !== null
}

/** @param {readonly string[]} words @param {string} last */
function listed(words, last) {
  return words.length < 2
    ? (words[0] ?? '')
    : `${words.slice(0, -1).join(', ')} ${last} ${words[words.length - 1]}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = new URL('../dist/http/openapi.js', import.meta.url).href
  const { openApiDocument } = await import(built)
  writeFileSync(new URL('../docs/http.md', import.meta.url), httpPage(await openApiDocument()))
}
