// @ts-check
// The inside of the built package, typed by its sources: for what it does not export.

/** @param {string} path @returns {Promise<any>} */
const load = (path) => import(new URL(`../dist/${path}`, import.meta.url).href)

/** @type {typeof import('../src/contract/errors.ts')} */
export const { errorCatalogue, isHoldfastError } = await load('contract/errors.js')
/** @type {typeof import('../src/contract/sweeps.ts')} */
export const { sweepNames, sweepSetting } = await load('contract/sweeps.js')
/** @type {typeof import('../src/contract/points.ts')} */
export const { points } = await load('contract/points.js')
/** @type {typeof import('../src/contract/wire.ts')} */
export const { acceptedReply } = await load('contract/wire.js')
/** @type {typeof import('../src/client/calls.ts')} */
export const { openCalls } = await load('client/calls.js')
/** @type {typeof import('../src/client/open-client.ts')} */
export const { openClient } = await load('client/open-client.js')
/** @type {typeof import('../src/testing/history.ts')} */
export const { openHistory, readEarlier } = await load('testing/history.js')
