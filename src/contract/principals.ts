/** What a principal may do over HTTP (contract sections 9 and 10). */
export const roles = ['producer', 'node', 'operator', 'viewer'] as const
/** `producer`, `node`, `operator` or `viewer`: what a principal may do over HTTP. */
export type Role = (typeof roles)[number]

export function isRole(word: string): word is Role {
  return (roles as readonly string[]).includes(word)
}
