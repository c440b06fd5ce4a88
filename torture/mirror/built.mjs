// @ts-check
// The mirror of the built package, typed by its source: the package does not export it.

/** @type {typeof import('../../src/node/mirror.ts')} */
export const { openMirror } = await import(new URL('../../dist/node/mirror.js', import.meta.url).href)

/** Whose mirror it is. */
export const owner = { hub: 'hub', host: 'host', node: 'node' }
