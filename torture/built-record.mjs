// @ts-check
// The record's side of the built package, typed by its sources: for the process that runs the whole.

/** @param {string} path @returns {Promise<any>} */
const load = (path) => import(new URL(`../dist/${path}`, import.meta.url).href)

/** @type {typeof import('../src/record/server-process.ts')} */
export const { findServer, serverState } = await load('record/server-process.js')
/** @type {typeof import('../src/record/embedded.ts')} */
export const { freePort } = await load('record/embedded.js')
/** @type {typeof import('../src/record/connections.ts')} */
export const { openStore } = await load('record/connections.js')
/** @type {typeof import('../src/record/functions.ts')} */
export const { functionsOf } = await load('record/functions.js')
/** @type {typeof import('../src/record/keys.ts')} */
export const { keysOf } = await load('record/keys.js')
/** @type {typeof import('../src/record/reader.ts')} */
export const { readerOf } = await load('record/reader.js')
/** @type {typeof import('../src/hub/open-hub.ts')} */
export const { initRecord } = await load('hub/open-hub.js')
/** @type {typeof import('../src/testing/final.ts')} */
export const { readFinal } = await load('testing/final.js')
