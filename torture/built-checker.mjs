// @ts-check
// The checker of the built package, typed by its sources.

/** @param {string} path @returns {Promise<any>} */
const load = (path) => import(new URL(`../dist/testing/checker/${path}`, import.meta.url).href)

/** @type {typeof import('../src/testing/checker/index.ts')} */
export const { check, DamagedHistory } = await load('index.js')
/** @type {typeof import('../src/testing/checker/report.ts')} */
export const { summaryOf, textOf } = await load('report.js')
/** @type {typeof import('../src/testing/checker/evidence.ts')} */
export const { grouped } = await load('evidence.js')
