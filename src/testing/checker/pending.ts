// I4, and the indexes beside it: at the end nothing disagrees, and on the way nothing had to be put right that no fault
// had damaged. A repair that hides a bug is one, too.
import { logged } from './evidence.js'
import type { Case, Entry, Violation } from './words.js'

/** Faults that damage the record itself, after which repairs are what is wanted. */
const damaging = /^aof-/

export function checkPending(file: Case): Violation[] {
  const repairs = file.faults.some(({ name }) => damaging.test(name)) ? [] : checkRepairs(file)
  return [...checkAudit(file), ...(file.moving ? [] : checkCounts(file)), ...repairs]
}

function checkAudit({ record: { audit } }: Case): Violation[] {
  const { recipients, byState, owed, pruned } = audit.conservation
  const sum = Object.values(byState).reduce((all, count) => all + count, owed + pruned)
  const counted = [`audit ${JSON.stringify(audit.conservation)}`]
  const found: Violation[] = audit.disagreements.map(({ about, what }) => {
    return { invariant: 'I4', id: about, text: what, evidence: [`audit ${about}: ${what}`] }
  })
  const wrong = (invariant: string, id: string, text: string) =>
    found.push({ invariant, id, text, evidence: counted })
  if (sum !== recipients)
    wrong('I1', 'conservation', `${recipients} recipients were accepted, ${sum} are accounted for`)
  if (owed !== 0) wrong('I7', 'obligations', `${owed} deliveries are still owed`)
  if (pruned !== 0) wrong('I8', 'pruned', `${pruned} deliveries were pruned`)
  return found
}

/** Two ways of counting. */
function checkCounts({ record: { audit, deliveries, messages } }: Case): Violation[] {
  const pairs = [
    ['deliveries', audit.deliveries, deliveries.length],
    ['messages', audit.messages, messages.length],
  ] as const
  return pairs.flatMap(([what, counted, read]) => {
    if (counted === read) return []
    const text = `the audit saw ${counted} ${what}, the record has ${read}`
    return [{ invariant: 'I4', id: what, text, evidence: [`audit: ${counted}`, `record: ${read}`] }]
  })
}

function checkRepairs({ entries }: Case): Violation[] {
  return entries.flatMap((entry) => {
    const what = repairOf(entry)
    if (what === undefined) return []
    const [id = ''] = what.split(/[ ;]/)
    const text = `${entry.verb} found the record in disorder, and no fault had damaged it: ${what.slice(0, 200)}`
    return [{ invariant: 'I4', id: id.replace(/:$/, ''), text, evidence: [logged(entry)] }]
  })
}

/** What an entry says it had to put right; undefined where it is about nothing of that kind. */
function repairOf({ verb, more }: Entry): string | undefined {
  if (verb === 'claim') return more.get('ghosts') ?? more.get('missing')
  if (verb.startsWith('reconcile')) return more.get('repaired')
  if (verb === 'recount') return more.get('counts')
  return verb === 'sweep_claims' ? more.get('notes') : undefined
}
