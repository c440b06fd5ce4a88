// @ts-check
// Writes docs/protocol.md from scripts/protocol/template.md and the headers of lua/functions. A test compares the page
// with these.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { libraryFunctions } from './protocol/headers.mjs'
import { protocolPage } from './protocol/page.mjs'

const template = new URL('protocol/template.md', import.meta.url)
export const pageFile = fileURLToPath(new URL('../docs/protocol.md', import.meta.url))

/** The page as it should be. */
export function currentPage() {
  return protocolPage(readFileSync(template, 'utf8'), libraryFunctions())
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(pageFile, currentPage())
