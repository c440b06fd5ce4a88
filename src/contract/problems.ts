import type { ProblemCode } from './problem-codes.js'

/**
 * What an audit and the sweeps can find wrong, by code: what it means, and what an operator does where it is not put
 * right by itself. `lua/lib/reconcile*.lua` names most of them; the totals and what was set aside are the hub's own.
 */
export const problems = {
  wrong_type: {
    meaning: 'a key of the hub has another type than its own',
    next: 'a sweep sets it aside and fills a new one from the rows; fences stay, for setting them aside would lift them all: RENAME the key, then set the fences again',
  },
  set_aside: {
    meaning: 'a key of a wrong type stands under `{hf}:damaged:`',
    next: 'look who wrote it, then DEL it',
  },
  row_damaged: {
    meaning: 'a row is no hash, or lacks a field that decides; nothing is decided by it',
    next: 'write the fields back by the log and its neighbours; what it was is not guessed',
  },
  row_missing: {
    meaning: 'the row of a session, of a message or of some deliveries of a message is gone',
    next: 'restore it from a backup, or tell the sender; a sweep cannot know what it held',
  },
  payload_missing: {
    meaning: 'the payload of an unfinished message is gone',
    next: 'restore it, or cancel its deliveries and accept the message again under another key',
  },
  key_missing: {
    meaning: 'the idempotency key of a message is gone: the same key would be a new message',
    next: 'SET it again with the id and fingerprint of the message, or stop its sender from repeating it',
  },
  unlisted: {
    meaning: 'an index does not name what its row says',
    next: 'a sweep lists it',
  },
  listed_wrongly: {
    meaning: 'the held queue or the unknown list names what its row says is elsewhere',
    next: 'a sweep takes it off',
  },
  group_missing: {
    meaning: 'the consumer group of a host is gone',
    next: 'a sweep makes it again and gives pending entries back to their owners',
  },
  entry_missing: {
    meaning: 'a delivery that waits or is owned has no entry in the stream of its host',
    next: 'a sweep enters it anew',
  },
  entry_left_over: {
    meaning: 'a delivery that left the stream has an entry there',
    next: 'a sweep deletes the entry',
  },
  pending_elsewhere: {
    meaning: 'an entry is pending under another consumer than its owner, or under nobody',
    next: 'a sweep gives it back to its owner',
  },
  read_unclaimed: {
    meaning: 'an entry was read from the stream by something that never claimed its delivery',
    next: 'a sweep queues it again; stop whatever reads the streams by XREADGROUP',
  },
  lane_unlisted: {
    meaning: 'a parked delivery is not in the list of its lane',
    next: 'a sweep fills the lane again, in order',
  },
  lane_unparked: {
    meaning: 'a lane that parks deliveries is not among the parked lanes of its host',
    next: 'a sweep lists it, and rings for the host',
  },
  fan_out_contradicts: {
    meaning: 'deliveries made and recipients owed are not the recipients of the message',
    next: 'somebody removed recipients from the list of the obligation: push them again, or resend the message',
  },
  miscounted: {
    meaning: 'the settled deliveries that a message counts are not those there are',
    next: 'a sweep counts them again',
  },
  retention_list_missing: {
    meaning: 'the list by which retention finds a settled message is gone',
    next: 'a sweep lists its messages anew',
  },
  totals_disagree: {
    meaning: 'totals of one moment do not add up: conservation, or a list against its count',
    next: 'an audit that repairs looks at every row, then sets the counts by them',
  },
  counts_drifted: {
    meaning: 'the counts are not what the rows add up to',
    next: 'an audit that repairs sets them, in a moment in which nothing moves',
  },
  other: {
    meaning: 'a problem that a newer library told of; its words say what',
    next: 'upgrade the hub',
  },
} as const satisfies Record<ProblemCode, { readonly meaning: string; readonly next: string }>
