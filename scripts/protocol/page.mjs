// @ts-check
// docs/protocol.md from the template beside this file and the headers of the functions.
import { padded, table } from '../errors-page.mjs'
import { headerParts } from './headers.mjs'

/** @typedef {import('./headers.mjs').LibraryFunction} LibraryFunction */
/** @typedef {{ readonly title: string, readonly about: string, readonly verbs: readonly string[] }} Group */

/** Who calls what. Every function is in one of them. @type {readonly Group[]} */
export const groups = [
  {
    title: 'Nodes',
    about: 'What a node calls, about in the order of a delivery.',
    verbs: [
      'join',
      'claim',
      'mirror',
      'ack',
      'take',
      'begin',
      'report',
      'refuse',
      'heartbeat',
      'leave',
      'attest',
    ],
  },
  {
    title: 'Producers',
    about:
      'What a hub calls for those who send. The fingerprint that hubs make is the SHA-256, in base64url, of the JSON text `["<conversation>","<sender>","<parent>",["<recipient>",…],"<sha256>"]`, without white space, the recipients sorted and each once.',
    verbs: ['accept', 'accept_batch', 'fan_out'],
  },
  {
    title: 'Effects',
    about: 'Actions outside deliveries that may happen once.',
    verbs: ['claim_effect', 'settle_effect', 'take_over_effect'],
  },
  {
    title: 'Sessions',
    about: 'Addressable targets on a host: [sessions.md](sessions.md).',
    verbs: ['open_session', 'close_session', 'rehome', 'move'],
  },
  {
    title: 'Fences',
    about: 'Rules that claims and begins obey; by hand in [redis-cli.md](redis-cli.md).',
    verbs: ['pause', 'hold', 'block', 'lift'],
  },
  {
    title: 'Operators',
    about: 'Decisions of people, each with its actor; and how a record is made and set up.',
    verbs: [
      ...['why', 'release', 'reject', 'hold_delivery', 'cancel', 'resolve_attempt', 'resolve_delivery'],
      ...['resolve_effect', 'retire', 'configure', 'add_principal', 'revoke_principal', 'init'],
    ],
  },
  {
    title: 'Sweeps and repair',
    about: 'What hubs call by themselves, slice by slice: [sweeps.md](sweeps.md).',
    verbs: [
      ...['sweep_claims', 'sweep_deadlines', 'sweep_effects', 'sweep_held', 'sweep_nodes', 'sweep_parked'],
      ...[
        'sweep_rehome',
        'sweep_reports',
        'sweep_stale',
        'busy_hosts',
        'note_sweep',
        'note_lost',
        'prune',
        'tally',
      ],
      ...['reconcile', 'reconcile_lists', 'reconcile_messages', 'recount'],
    ],
  },
]

/**
 * The page. Fails where a function is in no group, or a group names what is no function.
 * @param {string} template @param {readonly LibraryFunction[]} functions
 */
export function protocolPage(template, functions) {
  const byName = new Map(functions.map((each) => [each.name, each]))
  const sections = groups.map(({ title, about, verbs }) => {
    const parts = verbs.map((verb) => functionPart(taken(byName, `hf_${verb}`)))
    return `## ${title}\n\n${about}\n\n${parts.join('\n\n')}`
  })
  if (byName.size > 0) throw new Error(`in no group of the page: ${[...byName.keys()].join(', ')}`)
  const index = groups.map(({ title, verbs }) => [
    `[${title}](#${title.toLowerCase().replaceAll(' ', '-')})`,
    verbs.map((verb) => `[\`hf_${verb}\`](#hf_${verb})`).join(', '),
  ])
  return padded(template)
    .replace('<!-- index -->\n', () => table([['for', 'functions'], ...index]))
    .replace('<!-- functions -->', () => sections.join('\n\n'))
}

/** @param {Map<string, LibraryFunction>} byName @param {string} name */
function taken(byName, name) {
  const found = byName.get(name)
  if (found === undefined) throw new Error(`no function ${name}, or twice on the page`)
  byName.delete(name)
  return found
}

/** @param {LibraryFunction} one */
function functionPart({ name, about, parts, flags, replicated }) {
  const call = flags.includes('no-writes') ? '`FCALL_RO` or `FCALL`: changes nothing.' : '`FCALL`.'
  const memory = flags.includes('allow-oom') ? ' Answered also while memory is full.' : ''
  const waiting = replicated ? ' Its reply may ask for [replicas](#replicas).' : ''
  const lines = headerParts.flatMap((part) => {
    return (parts.get(part) ?? []).map((line, at) => `${(at === 0 ? part : '').padEnd(7)}${line}`)
  })
  const first = about.replace(/^(?!hf_)./, (letter) => letter.toUpperCase())
  return `### ${name}\n\n${first}\n\n${call}${memory}${waiting}\n\n\`\`\`text\n${lines.join('\n')}\n\`\`\``
}
