/** By what programs tell problems of a record apart; src/contract/problems.ts says what each means. */
export const problemCodes = [
  'wrong_type',
  'set_aside',
  'row_damaged',
  'row_missing',
  'payload_missing',
  'key_missing',
  'unlisted',
  'listed_wrongly',
  'group_missing',
  'entry_missing',
  'entry_left_over',
  'pending_elsewhere',
  'read_unclaimed',
  'lane_unlisted',
  'lane_unparked',
  'fan_out_contradicts',
  'miscounted',
  'retention_list_missing',
  'totals_disagree',
  'counts_drifted',
  'other',
] as const
/** The code of a problem that an audit tells of. */
export type ProblemCode = (typeof problemCodes)[number]

/** The code as the library told it; `other` where this release does not know it. */
export function problemCodeOf(text: string | undefined): ProblemCode {
  return problemCodes.find((code) => code === text) ?? 'other'
}
