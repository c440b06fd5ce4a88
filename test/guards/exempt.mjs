// @ts-check

/**
 * Guards without a test that catches their mutant: by name, why that cannot be, and the guard in front of it.
 * @type {ReadonlyMap<string, string>}
 */
export const exempt = new Map([])
