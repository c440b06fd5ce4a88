// @ts-check
// What breaks in systems like this, and what shows that Holdfast stands it: named tests, and faults of runs. A test
// looks whether each of them exists.

/** `name`: a text of the test's title, as it stands in the file. @typedef {{ file: string, name: string }} NamedTest */
/** `note`: what is shown less widely than it could be. @typedef {{ what: string, tests: NamedTest[], faults: string[], note?: string }} Scenario */
/** @typedef {{ title: string, scenarios: Scenario[] }} Group */

const faults = (/** @type {string} */ name) => `test/faults/${name}.test.ts`
const at = (/** @type {string} */ file, /** @type {string[]} */ ...names) =>
  names.map((name) => ({ file, name }))

/** @type {readonly Group[]} */
export const groups = [
  {
    title: 'Pending list and streams',
    scenarios: [
      {
        what: 'A claimed entry is deleted by hand, its node dies: the others are resumed, the ghost is told once and cleared',
        tests: [
          ...at('test/record/functions-claim.test.ts', 'reports a ghost once, and resumes the others'),
          ...at('test/sweeps/damage.test.ts', 'is told by its id, and twenty rounds change nothing more'),
        ],
        faults: [],
      },
      {
        what: 'Somebody reads a host’s stream with a bare XREADGROUP: what was stolen is handed out again',
        tests: [
          ...at('test/record/functions-claim.test.ts', 'hands out again what a stranger read'),
          ...at(
            'test/sweeps/damage.test.ts',
            'from under a node, and read by a stranger',
            'read under the name of a live node',
          ),
        ],
        faults: [],
      },
      {
        what: 'FLUSHALL under load: nothing is made again silently; work flows after `holdfast init --after-loss`',
        tests: [
          ...at(
            'test/http/two-hubs.test.ts',
            'is told by every call and by readiness; after init --after-loss both hubs work and are ready',
          ),
          ...at(
            'test/http/long-poll.test.ts',
            'FLUSHALL ends the wait; after init and a join work comes again',
          ),
        ],
        faults: [],
      },
      {
        what: 'Eviction policy or persistence are changed on the running server: readiness turns red, and green when mended',
        tests: at('test/http/readiness.test.ts', 'is red while %s is %s, and says so'),
        faults: [],
      },
    ],
  },
  {
    title: 'Claim, takeover, fence',
    scenarios: [
      {
        what: 'A node is stopped past staleness and wakes: its late steps are refused; after its begin nobody takes over',
        tests: at(
          faults('takeover'),
          'B takes over and finishes, A is refused STALE_EPOCH, nothing changes',
          'after its begin was granted: nobody takes over, it is listed, its own report settles it',
        ),
        faults: ['stop-node', 'stop-point'],
      },
      {
        what: 'Handlers run longer than staleness with work buffered behind them: no overlap, no takeover',
        tests: at(
          faults('takeover'),
          'sees no overlap and no takeover while another node of the host looks on',
        ),
        faults: [],
      },
      {
        what: 'A thousand stale claims and eight recoverers at once: each is taken once, counted once',
        tests: at(
          faults('recovery-storm'),
          'after a crash: each is taken once, under a higher epoch, counted once',
        ),
        faults: [],
      },
      {
        what: 'A process dies while it holds the lock of a sweep: the next run is in time',
        tests: at(
          'test/sweeps/outages.test.ts',
          'a hub killed inside a sweep does not keep the next run waiting',
        ),
        faults: ['kill-hub', 'stop-hub'],
      },
      {
        what: 'A delivery that makes its node exit is held as poison; rolling deploys under a long handler bury nothing',
        tests: at(
          faults('poison'),
          'with a peer on the host that takes over each time: the same',
          'bury nothing: neither the handler nor what waits behind it',
        ),
        faults: [],
      },
      {
        what: 'A fence is set while claims race with it: nothing is granted after its acknowledgement',
        tests: [
          ...at(faults('fence-races'), 'a fence is set while claims race with it'),
          ...at(
            'test/record/functions-fences.test.ts',
            'a claim never grants anything after a pause was acknowledged (I3)',
          ),
        ],
        faults: [],
        note: 'in every run: an operator sets and lifts fences of every kind and scope',
      },
      {
        what: 'A caller’s clock is wrong: it decides no deadline, staleness or expiry',
        tests: at(
          faults('clocks'),
          'decides no deadline: what has time left is executed, what has none is not',
          'is taken over by the clock of Redis once it is silent',
        ),
        faults: ['clock-jump', 'clock-strobe'],
        note: 'the two faults move the clock of the server',
      },
    ],
  },
  {
    title: 'Values',
    scenarios: [
      {
        what: 'Large numbers, empty lists, emoji and any bytes reach the executor as they were; what is no UTF-8 is refused at the door',
        tests: [
          ...at(
            faults('values'),
            'a function gets every payload byte for byte',
            'a command gets every payload byte for byte on its standard input',
            'a lone surrogate is refused at the door, and nothing is stored',
            'texts of a command cut at a limit stay valid',
          ),
          ...at(
            'test/http/hostile-bodies.test.ts',
            'with payloads that others would change are kept to the byte',
          ),
        ],
        faults: [],
        note: 'in every run: each execution is compared with the digest of what was accepted',
      },
      {
        what: 'Host names of another form, with braces, stars, blanks or NUL: 400, and no other key',
        tests: [
          ...at(
            faults('values'),
            'is refused everywhere, and no key appears',
            'no name reaches another key or slot, and lanes stay apart',
          ),
          ...at('test/http/hostile-bodies.test.ts', 'of hosts are refused in every path'),
        ],
        faults: [],
      },
    ],
  },
  {
    title: 'Connections',
    scenarios: [
      {
        what: 'The reply to any step is lost and the socket cut: one message, one epoch step, one grant, one outcome',
        tests: [
          ...at(
            faults('connections'),
            'one message, and its ids are the answer',
            'one epoch step, one grant, one execution, one outcome',
            'a node behind it goes on when it comes back, and has done everything once',
          ),
          ...at(
            'test/http/long-poll.test.ts',
            'between hub and client: the repeat gets the same deliveries, and they go on',
          ),
        ],
        faults: [
          'net-drop-reply',
          'net-duplicate',
          'net-cut',
          'net-half-open',
          'net-blackhole',
          'net-delay',
          'client-kill',
          'partition',
        ],
      },
      {
        what: 'An idle node blocks in a read: nothing else waits for it',
        tests: at(
          faults('blocking-reads'),
          'no step of it waits for the end of the block',
          'heartbeats of a node go on while its doorbell blocks',
          'a hub answers while it waits for messages, and each wait ends by itself',
        ),
        faults: [],
      },
      {
        what: 'The primary turns read-only: 503 meanwhile, every loop is back soon after, nothing acknowledged is missing',
        tests: [
          ...at('test/http/two-hubs.test.ts', 'a primary that turns read-only'),
          ...at('test/sweeps/outages.test.ts', 'after a primary was read-only'),
        ],
        faults: ['read-only'],
      },
      {
        what: 'Redis is away for seconds or minutes: every loop goes on within ten seconds after',
        tests: [
          ...at('test/sweeps/outages.test.ts', 'after the server was away'),
          ...at('test/http/two-hubs.test.ts', 'a server that is killed, and comes back'),
        ],
        faults: ['kill-redis'],
        note: 'three seconds in the tests; HOLDFAST_OUTAGE_MS makes the outages of the sweeps longer',
      },
      {
        what: 'Scripts are flushed again and again, the library is deleted: no error that a user sees, no half step',
        tests: at(
          faults('script-flush'),
          'has no error that a user sees, and leaves no half step',
          'every kind of call brings a deleted library back by itself',
        ),
        faults: ['script-flush', 'library-deleted'],
      },
    ],
  },
  {
    title: 'Store',
    scenarios: [
      {
        what: 'Memory is full: accept is refused with nothing stored, the backlog still drains',
        tests: at(
          faults('out-of-memory'),
          'accept is refused with STORE_UNAVAILABLE and nothing stored, by function and by hub; then it works',
          'mirror, ack, begin, report, takeover, lift and release drain the backlog',
        ),
        faults: ['memory'],
      },
      {
        what: 'The disk is full, the server’s or a mirror’s: nothing acknowledged is lost, work goes on by itself when there is room',
        tests: at('test/sweeps/outages.test.ts', 'after its files had no room to grow, which ended it'),
        faults: ['disk-full', 'mirror-full', 'fsync-error'],
      },
      {
        what: 'The power fails at any moment: everything acknowledged is there; with `everysec` the same check fails',
        tests: at(
          'test/torture/mutants.test.ts',
          'break something, and say which promise is missed by it; the controls break nothing',
        ),
        faults: ['power-cut', 'mirror-power-cut'],
        note: '`npm run torture:mutants` runs the same cuts on `everysec`, which has to lose; `node torture/mirror-power.mjs` cuts under a mirror alone, and its control `--without-sync` has to lose',
      },
      {
        what: 'The AOF is cut, or a bit of it is flipped: all or nothing of a step; a damaged payload is never executed',
        tests: [
          ...at(
            'test/torture/devices.test.ts',
            'is cut within its last step, whichever it is (%i)',
            'gets one bit of a payload flipped, and nothing else',
          ),
          ...at(
            'test/node/handoff.test.ts',
            'refuses a payload that does not match its digest before it is stored; the rest goes on',
          ),
          ...at(
            'test/conformance/real-nodes.ts',
            'a payload that does not match its digest is refused, and held',
          ),
        ],
        faults: ['aof-cut', 'aof-flip', 'aof-old-copy', 'aof-missing-manifest'],
        note: 'these faults take away what was acknowledged: they are made where they are named, and not counted here',
      },
      {
        what: 'Redis is frozen for twice the staleness: no takeovers, no double execution',
        tests: at(
          faults('takeover'),
          'Redis frozen for twice the staleness under five live nodes: no takeover, nothing listed',
        ),
        faults: ['freeze-redis'],
      },
      {
        what: 'Redis, hubs and nodes are killed at random under load: accepted = settled + visible elsewhere, id by id',
        tests: [
          ...at(
            faults('many-kills'),
            'kills of hub, node and Redis under load: one round of sweeps, and an audit has nothing to say',
          ),
          ...at(faults('kill-points'), 'between the two marks of its handler: its delivery ends unknown'),
        ],
        faults: ['kill-redis', 'kill-hub', 'kill-node', 'kill-producer', 'kill-point'],
      },
    ],
  },
  {
    title: 'Idempotency and HTTP',
    scenarios: [
      {
        what: 'One key: the same bytes get the first answer, anything else is refused; fifty posts at once on two hubs make one message',
        tests: [
          ...at(
            faults('idempotency'),
            'with anything else changed is refused, and the first is untouched',
            'fifty times at once makes one message, and everyone gets its ids',
          ),
          ...at('test/http/two-hubs.test.ts', 'fifty parallel posts to %i recipients are one message'),
        ],
        faults: [],
        note: 'in every run: producers repeat keys, and ask for known keys with one byte changed',
      },
      {
        what: 'A handler is done and its report’s reply is lost, or its node is killed in between: recorded, or unknown, never run again',
        tests: [
          ...at(faults('idempotency'), 'under its key: the recorded answer, and nothing changes'),
          ...at(
            faults('restarts'),
            'the attempt is unknown for good: no later process and no other node runs it again',
          ),
        ],
        faults: ['kill-node', 'net-drop-reply'],
      },
      {
        what: 'No recipient, 1, 127, 128, 129 and 10,000; a hub is killed at every chunk of a long fan-out',
        tests: at(
          faults('fan-out'),
          'none: complete and settled at once, not stuck',
          '10,000: made in chunks, each a call of its own',
          'a hub is killed at every chunk of a long fan-out',
        ),
        faults: ['kill-hub'],
      },
      {
        what: 'Release, reject or resolve of what is not in the state for it: refused with its own code, nothing changes',
        tests: at(
          faults('refused-acts'),
          'release and reject of what is queued, executing or settled: NOT_HELD, nothing changes',
          'two operators at once: one act counts, the other is told',
        ),
        faults: [],
      },
      {
        what: 'A node is killed while its command runs on: the successor does not run the work again',
        tests: [
          ...at(
            faults('restarts'),
            'the successor reports unknown with stillRunning, and does not run it again',
          ),
          ...at(
            faults('section-4-settling'),
            '--probe is asked only after the command that outlived its node has ended',
          ),
        ],
        faults: [],
      },
      {
        what: 'A node dies with an outcome it had not reported: its next process reports it, and it settles',
        tests: at(
          faults('restarts'),
          'goes out under the next incarnation and settles; it is never listed as unknown',
        ),
        faults: ['kill-node', 'kill-point'],
      },
      {
        what: 'One session of a message is fenced: its other recipients are not held up',
        tests: at('test/record/functions-session-gate.test.ts', '%s: its other recipients are not held up'),
        faults: [],
      },
    ],
  },
]
