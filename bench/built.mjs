// @ts-check
// The inside of the built package, typed by its sources: for what it does not export.

/** @param {string} path @returns {Promise<any>} */
const load = (path) => import(new URL(`../dist/${path}`, import.meta.url).href)

/** @type {typeof import('../src/record/server-process.ts')} */
export const { findServer, launch, serverState } = await load('record/server-process.js')
/** @type {typeof import('../src/record/embedded.ts')} */
export const { freePort } = await load('record/embedded.js')
/** @type {typeof import('../src/record/connections.ts')} */
export const { openStore } = await load('record/connections.js')
/** @type {typeof import('../src/record/blocking-reader.ts')} */
export const { openBlockingReader } = await load('record/blocking-reader.js')
/** @type {typeof import('../src/record/functions.ts')} */
export const { functionsOf } = await load('record/functions.js')
/** @type {typeof import('../src/record/keys.ts')} */
export const { keysOf } = await load('record/keys.js')
/** @type {typeof import('../src/contract/message.ts')} */
export const { prepareMessage } = await load('contract/message.js')
/** @type {typeof import('../src/hub/open-hub.ts')} */
export const { initRecord, openHubParts } = await load('hub/open-hub.js')
/** @type {typeof import('../src/sweeps/run.ts')} */
export const { runSweep } = await load('sweeps/run.js')
/** @type {typeof import('../src/sweeps/schedule.ts')} */
export const { startSchedule } = await load('sweeps/schedule.js')
