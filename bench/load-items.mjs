// @ts-check
// The work items: the folder handoff, neighbours, and every file of items/. Each exports `item`.
import { readdirSync } from 'node:fs'

/**
 * A work item. What `run` answers is written to the report as it is; the page shows the parts of it that
 * page/section.mjs names.
 * @typedef {object} Item
 * @property {string} name
 * @property {string} title
 * @property {(options: import('./run.mjs').Options) => Promise<any>} run
 * @property {(figures: any) => string} show
 */

const items = new URL('./items/', import.meta.url)

/** By name, handoff last. @returns {Promise<Map<string, Item>>} */
export async function loadItems() {
  const files = readdirSync(items).filter((name) => name.endsWith('.mjs'))
  const urls = ['./neighbours.mjs', ...files.map((name) => `./items/${name}`)]
  const sorted = (await Promise.all(urls.map(itemOf))).sort((a, b) => a.name.localeCompare(b.name))
  const loaded = [...sorted, await itemOf('./handoff/item.mjs')]
  return new Map(loaded.map((item) => [item.name, item]))
}

/** @param {string} url @returns {Promise<Item>} */
async function itemOf(url) {
  return (await import(new URL(url, import.meta.url).href)).item
}
