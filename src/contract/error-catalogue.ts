/**
 * The error catalogue (contract sections 9 and 10). A code means the same in Lua, TypeScript, HTTP and the
 * docs, and is never reused. `next` says what the caller does about it.
 */
export const catalogue = {
  // The record itself
  STORE_UNKNOWN: {
    status: 503,
    cause: 'the Redis server holds no Holdfast record of this hub (never initialised, or lost)',
    next: 'run `holdfast init`; if data was there before, restore it or run `holdfast init --after-loss`',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    cause: 'the Redis server cannot be reached or refuses to work now',
    next: 'retry the same call; it is safe to repeat',
  },
  DEADLINE_EXCEEDED: {
    status: 503,
    cause: 'no answer within the deadline; the call may or may not have taken effect',
    next: 'repeat the same call: the answer is the first one',
  },
  NOT_REPLICATED: {
    status: 503,
    cause:
      'done on the primary, but fewer replicas than wait_replicas have it: it would be lost with the primary',
    next: 'repeat the same call: the answer is the first one, once the replicas have it',
  },
  NOT_ATTESTED: {
    status: 503,
    cause:
      'the Redis server started anew or took over, and its record is still being compared with what nodes and hubs saw',
    next: 'retry the same call; a heartbeat of the live nodes settles it, or stale_after_ms at most',
  },
  SERVER_NOT_FOUND: {
    status: 503,
    cause: 'no valkey-server or redis-server program on this machine',
    next: 'install one through the system package manager (Debian: apt-get install redis-tools), or name a server with --redis',
  },
  LIBRARY_NEWER: {
    status: 503,
    cause: 'the server runs a newer function library than this process brings',
    next: 'upgrade this process',
  },
  NOTHING_LOST: {
    status: 409,
    cause: '--after-loss was asked for, but the record is there',
    next: 'leave it alone',
  },

  RECORD_DAMAGED: {
    status: 503,
    cause: 'the record contradicts itself: something was deleted or overwritten by hand',
    next: 'look at the key named; restore it, or run `holdfast init --after-loss` when the data is gone',
  },

  // What a caller hands in
  INVALID_ARGUMENT: {
    status: 400,
    cause: 'an argument is not of its form',
    next: 'correct it and call again',
  },
  NO_ROUTE: {
    status: 422,
    cause: 'a recipient is a session never seen, or a host that never joined while open_hosts is 0',
    next: 'correct the recipient; nothing was accepted',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    cause: 'the payload is over max_payload_bytes',
    next: 'send a reference instead, or raise max_payload_bytes',
  },
  TOO_MANY_RECIPIENTS: {
    status: 400,
    cause: 'more recipients than max_recipients',
    next: 'split the message, or raise max_recipients',
  },
  RESULT_TOO_LARGE: {
    status: 413,
    cause: 'a result or error body is over max_result_bytes',
    next: 'report a reference instead, or raise max_result_bytes',
  },
  IDEMPOTENCY_MISMATCH: {
    status: 422,
    cause: 'the key was used before with other content; the first is untouched',
    next: 'use a new key for new content',
  },

  HOST_FULL: {
    status: 429,
    cause: 'a recipient host has max_queued_per_host entries queued; nothing was accepted',
    next: 'send again later with the same key',
  },
  HOST_RETIRED: {
    status: 409,
    cause: 'the host is retired: nothing is handed out there',
    next: 'use another host',
  },
  HOST_NOT_FOUND: {
    status: 404,
    cause: 'no host of this name was ever seen',
    next: '`holdfast host ls` shows those that were',
  },

  // Nodes
  NOT_JOINED: { status: 409, cause: 'this node has not joined the hub', next: 'join, then repeat the call' },
  SUPERSEDED: {
    status: 409,
    cause: 'a later incarnation of this node has joined',
    next: 'stop this process; the later one works on. Where none does, and its mirror was lost: start it as another --node',
  },
  MIRROR_CLONED: {
    status: 409,
    cause: 'another process joined with the same incarnation: the mirror was copied, or lost and begun anew',
    next: 'give this process its own --node and --mirror',
  },
  LEFT: { status: 409, cause: 'this incarnation has left', next: 'start the node again' },
  STALE_REQUEST: {
    status: 409,
    cause: 'a claim with a lower request number than one already answered',
    next: 'drop this answer; the later request stands',
  },
  MIRROR_LOCKED: {
    status: 409,
    cause: 'another process holds the mirror',
    next: 'stop that process, or use another --mirror',
  },
  MIRROR_UNUSABLE: {
    status: 500,
    cause: 'the mirror cannot be opened or written, or belongs to another node',
    next: 'repair the disk, or move the file away (its unsent reports are lost with it)',
  },

  // Steps on deliveries
  DELIVERY_NOT_FOUND: {
    status: 404,
    cause: 'no delivery of this id: never made, or older than the window',
    next: 'check the id',
  },
  MESSAGE_NOT_FOUND: {
    status: 404,
    cause: 'no message of this id: never accepted, or older than the window',
    next: 'check the id',
  },
  STALE_EPOCH: {
    status: 409,
    cause: 'the delivery has changed owner since',
    next: 'drop the copy; the present owner goes on',
  },
  NOT_OWNER: {
    status: 409,
    cause: 'the delivery or attempt belongs to another node, process or grant',
    next: 'drop the copy; the present owner goes on',
  },
  WRONG_STATE: {
    status: 409,
    cause: 'the step does not exist from the present state',
    next: 'look at the state in the answer (`holdfast delivery show`)',
  },
  GRANT_OPEN: {
    status: 409,
    cause: 'an attempt is open under another grant',
    next: 'settle that attempt first',
  },
  PAUSED: {
    status: 409,
    cause: 'a pause covers this delivery',
    next: 'ask again with the same grant when it is lifted',
  },
  BLOCKED: {
    status: 409,
    cause: 'a block covers this delivery: it failed',
    next: 'nothing; it will not run',
  },
  EXPIRED: { status: 409, cause: 'its deadline has passed: it failed', next: 'nothing; it will not run' },
  NOT_BEGUN: {
    status: 409,
    cause: 'no attempt was ever begun under this grant, and none can be any more',
    next: 'nothing; the delivery goes on without it',
  },
  ATTEMPT_NOT_FOUND: { status: 404, cause: 'no attempt of this id', next: 'check the id' },
  ALREADY_SETTLED: {
    status: 409,
    cause: 'the attempt has an outcome; a late report never overwrites it',
    next: 'nothing; the report is kept as evidence',
  },
  NOT_HELD: {
    status: 409,
    cause: 'the delivery is not in the held queue',
    next: 'look at its state (`holdfast delivery show`); only held deliveries are released or rejected',
  },
  EXECUTING: {
    status: 409,
    cause: 'an attempt is open: whatever it does cannot be taken back',
    next: 'wait for its report, or resolve it when its outcome is known by other means',
  },
  HELD: {
    status: 409,
    cause: 'the delivery is in the held queue',
    next: 'an operator releases or rejects it',
  },

  // Effects
  PAYLOAD_MISMATCH: {
    status: 409,
    cause: 'the effect was claimed before with another payload hash or type; nothing changed',
    next: 'use a new effect id for other content',
  },
  EFFECT_NOT_FOUND: { status: 404, cause: 'no effect of this id was ever claimed', next: 'check the id' },
  TOO_YOUNG: {
    status: 409,
    cause: 'the effect was claimed too recently to be taken over',
    next: 'ask again when it is older than recovery_age_ms and its own time limit',
  },
  NOT_RECOVERABLE: {
    status: 409,
    cause: 'no basis is stated on which the effect may be taken over: age alone licenses nothing',
    next: 'give a probe, or declare the effect idempotent; else it stays unknown until an operator resolves it',
  },

  // Sessions
  SESSION_NOT_FOUND: { status: 404, cause: 'no session of this id was ever opened', next: 'open it first' },
  SESSION_ELSEWHERE: {
    status: 409,
    cause: 'another host owns the session',
    next: 'rehome it, or open it on its own host',
  },
  SESSION_MISSING: {
    status: 409,
    cause: 'the session was reported missing: nothing answers at its address',
    next: 'an operator opens it again (`holdfast session open`)',
  },
  SCOPE_MISMATCH: {
    status: 409,
    cause: 'the scope is not the one of the session',
    next: 'use a host whose nodes are registered for the scope of the session',
  },
  HOST_NOT_LIVE: {
    status: 409,
    cause: 'the host has no live node, or is retired',
    next: 'start a node there first (`holdfast host ls`)',
  },
  TOO_MANY_CHILDREN: {
    status: 409,
    cause: 'the session has more child sessions than one rehome takes along',
    next: 'rehome some of the children first',
  },
  TOO_MANY_CRASHES: {
    status: 409,
    cause: 'the attempt was begun again as often as max_takeovers allows',
    next: 'an operator resolves it (`holdfast attempt resolve`)',
  },
  NOT_UNKNOWN: {
    status: 409,
    cause: 'the delivery is not in doubt',
    next: 'look at its state (`holdfast delivery show`)',
  },

  // Who may speak over HTTP
  UNAUTHENTICATED: {
    status: 401,
    cause: 'no credentials, or none that are known here and not revoked',
    next: 'send `Authorization: Bearer <token>`, use the pinned client certificate, or log in on the page; `holdfast principal add` makes a token',
  },
  FORBIDDEN: {
    status: 403,
    cause: 'this principal may not do this',
    next: 'use a principal with the role, host or sender that the call needs (`holdfast principal ls`)',
  },
  SCOPE_NOT_AUTHORISED: {
    status: 403,
    cause: 'the principal of this node is not authorised for the scope',
    next: 'join without it, or add a principal with --scope',
  },
  AUTHENTICATION_REQUIRED: {
    status: 403,
    cause: 'no principal exists, so only loopback may be listened on',
    next: 'run `holdfast principal add operator` first, or listen on 127.0.0.1',
  },
  PRINCIPAL_EXISTS: {
    status: 409,
    cause: 'the name or the certificate is in use; names are not used twice',
    next: 'choose another name',
  },
  PRINCIPAL_NOT_FOUND: {
    status: 404,
    cause: 'no principal of this name',
    next: '`holdfast principal ls` shows those that are',
  },

  // The HTTP surface
  ROUTE_NOT_FOUND: {
    status: 404,
    cause: 'no such route',
    next: 'see /openapi.json or /docs; an id with a slash in it is percent-encoded in a path',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    cause: 'the route does not know this method',
    next: 'use one of the methods in the Allow header',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    cause: 'the body is not of a type that this route takes',
    next: 'send `Content-Type: application/json`',
  },
  BODY_TOO_LARGE: {
    status: 413,
    cause: 'the request body is over the limit of this route',
    next: 'send less at a time',
  },
  RATE_LIMITED: {
    status: 429,
    cause: 'more requests than one principal may send, or more tries to log in than one address may make',
    next: 'repeat the same call after the seconds in Retry-After',
  },
  OVERLOADED: {
    status: 503,
    cause: 'the hub has more work than it can take on; nothing of this call was done',
    next: 'repeat the same call after the seconds in Retry-After, here or on another hub',
  },
  SHUTTING_DOWN: {
    status: 503,
    cause: 'the hub is shutting down; nothing of this call was done',
    next: 'repeat the same call on another hub, or here when it is back',
  },
  INTERNAL: {
    status: 500,
    cause: 'a fault of the hub itself; whether the call took effect is in the record',
    next: 'repeat the same call; report the request id if it stays',
  },
  HUB_UNREACHABLE: {
    status: 503,
    cause: 'the hub at the URL cannot be reached, or does not answer as one',
    next: 'check --url; repeat the same call, it is safe to repeat',
  },
  SET_INCOMPLETE: {
    status: 503,
    cause: 'of a set of hubs some did it and some did not; the detail names them',
    next: 'repeat the same call: where it took effect it changes nothing more',
  },

  // What was closed by its own caller
  CLOSED: {
    status: 409,
    cause: 'what was called is closed (a hub, a client, a node, a supervisor); nothing of this call was done',
    next: 'open another one, and call that',
  },

  // Fences
  FENCE_NOT_FOUND: {
    status: 404,
    cause: 'no such fence stands',
    next: '`holdfast fence ls` shows those that do',
  },
} as const
