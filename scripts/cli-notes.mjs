// @ts-check
// What docs/cli.md says of a command beside its own description: answers in JSON, exit codes, and what follows from
// it. By the words of the command; scripts/cli-page.mjs puts each below its command.

/** @type {Readonly<Record<string, string>>} */
export const notes = {
  init: 'JSON: `{storeId, generation, made}`; of a set `{hubs}`, each with its `hub`.',
  'hub-of': 'By the names alone: neither record nor hub is asked. JSON: `{conversation, hub}`.',
  dev: 'It says where each of them is. Without `--listen` it serves on 127.0.0.1:8090 or, when that is taken, on any free port. See [node](#node) for the flags of a node.',
  serve: 'See [below](#serve).',
  node: 'Takes `--exec` or `--forward`. See [below](#node).',
  send: 'Takes at least one `--to`, and the payload as TEXT or with `--payload`. See [below](#send). JSON: `{id, key, deliveries, fanOut, replayed}`; with `--wait` the deliveries as `message show` has them.',
  'message show': 'JSON: the message.',
  'message resend': 'JSON as for `send`.',
  'delivery ls': 'Where there is more, stderr says how to go on. JSON: `{deliveries, cursor?}`.',
  'delivery release':
    'Its counters are clean again. With `--state` in place of an id: [acts on many](#acts-on-many). JSON, as for the next three: `{id, state, epoch, logId}`.',
  'delivery reject': 'With `--state` in place of an id: [acts on many](#acts-on-many).',
  'delivery hold':
    "Its owner's next step is refused. With `--state` in place of an id: [acts on many](#acts-on-many).",
  'delivery cancel': 'With `--state` in place of an id: [acts on many](#acts-on-many).',
  'delivery resolve': 'For the state `unknown`. JSON as for `delivery release`.',
  'held ls': 'JSON: `{held}`.',
  'pending ls': 'JSON: `{pending}`, the disagreements of each under `disagrees`.',
  'unknown ls': 'JSON: `{unknown}`.',
  'attempt resolve':
    'After `not_sent` the delivery is queued again. Refused (`EXECUTING`) while the process that began it may live and has not said that its executor ended, unless forced. JSON: `{id, state, epoch, outcome, logId}`, state and epoch those of the delivery.',
  'effect ls': 'JSON: `{effects, cursor?}`.',
  'effect resolve': 'Refused (`EXECUTING`) while nothing says that the executor is gone, unless forced.',
  'fence ls': 'Of a set, also those that stand on some hubs only (`missing`). JSON: `{fences}`.',
  'fence lift':
    'JSON: `{fence, reason, hostsRung, left, logId}`, where `left` of the held are queued by the next claims.',
  'host ls': 'What was handed over and is not finished stands beside what is queued. JSON: `{hosts}`.',
  'host drain': 'The scope of that fence is `host:HOST`. A host never seen is told on stderr.',
  'host retire': 'JSON: the host as in `host ls`.',
  'session ls': 'JSON: `{sessions, cursor?}`.',
  'session show': 'One never opened is `SESSION_NOT_FOUND`.',
  'session open':
    'Also one that was reported missing, or closed for good: then what a terminal close held is queued again. The directory is made canonical on this machine; where it is on another one, give its real absolute path. JSON, as for the next two: `{session, host, scope, epoch, state, terminal?, reason?, crashes, restartBudget, logId}`.',
  'session close':
    'After `reload` and `restart` what is sent to it waits; after `disable` and `removed` it goes to the held queue; after a crash the restart budget on the row decides. Without `--epoch` it is the close of whoever has it open now.',
  'session rehome':
    'The host needs a live node with the same `--scope` (`HOST_NOT_LIVE`, `SCOPE_MISMATCH`), and nothing of the session may run (`EXECUTING`). When it was cut, the same command completes it.',
  'principal add': 'A node needs `--host`. JSON: `{principal, token?}`, the token where one was made.',
  'principal ls': 'JSON: `{principals}`.',
  'principal revoke': 'A name is not used twice. JSON: the principal.',
  'config get':
    'A bad value is named on stderr as well, and so is a field that is no tunable. JSON: `{settings}`, each with `name`, `value`, `default`, `meaning`, `bad`, and `set`, the text in the record, where there is one.',
  'config set':
    'A bad name or value is refused, and changes nothing. Where nodes are told to beat more seldom than `stale_after_ms` allows, stderr says so. JSON as for `config get NAME`.',
  'functions load': 'JSON: `{kind, version}`.',
  'functions verify': 'JSON: `{kind, version?, digest, serverDigest?}`.',
  'sweep ls':
    '[sweeps.md](sweeps.md) says what each does. What was left is told on stderr. JSON: `{sweeps}`.',
  'sweep run':
    'Ends with 1 when one failed. JSON: `{runs}`, each with `name`, `found`, `repaired`, `left`, `notes`, `durationMs`, `error?`.',
  audit:
    'Each disagreement comes with a line for the shell that shows it. JSON: `{conservation, deliveries, messages, disagreements, more}`.',
  doctor:
    'JSON: `{findings}`, each with `name`, `value`, `verdict` (`ok`, `accepted`, `attention`, `bad`) and `fix?`.',
  top: 'See [below](#top). JSON: one snapshot a line.',
  tail: 'See [below](#tail). JSON: one entry a line.',
  completion: 'See [below](#completion).',
}
