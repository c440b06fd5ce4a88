import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { AxeResults } from 'axe-core'
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { expect } from 'vitest'

/** A real browser with a profile of its own. Close it in afterAll. */
export interface TestBrowser {
  /** A page of a fresh window: no cookie of another one is in it. */
  open(options?: BrowserContextOptions): Promise<TestPage>
  close(): Promise<void>
}

export interface TestPage {
  readonly page: Page
  readonly context: BrowserContext
  /** What went wrong in it: errors that nobody caught, and what its own rules refused. */
  readonly troubles: readonly string[]
  close(): Promise<void>
}

const programs = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/** The browser of this machine, or the one that `HOLDFAST_TEST_BROWSER` names. A missing one never skips a test. */
function findBrowser(): string {
  const asked = process.env['HOLDFAST_TEST_BROWSER']
  if (asked !== undefined && asked !== '') return asked
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const program of programs) {
      const path = join(folder, program)
      try {
        accessSync(path, constants.X_OK)
        return path
      } catch {
        // Not there.
      }
    }
  }
  throw new Error(
    'no Chromium here; npm test installs it where it may: node scripts/ensure-server.mjs chromium',
  )
}

/** Judges a page from inside; put in before anything of the page itself. */
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Without these it asks the network for things of its own, which is not there. */
const quietly = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export async function openBrowser(): Promise<TestBrowser> {
  const profile = mkdtempSync(join(tmpdir(), 'holdfast-browser-'))
  const isRoot = process.getuid?.() === 0
  const browser = await chromium.launch({
    executablePath: findBrowser(),
    args: [...quietly, ...(isRoot ? ['--no-sandbox'] : [])],
    env: { ...process.env, HOME: profile } as Record<string, string>,
  })
  return {
    open: async (options = {}) => {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })
      await context.addInitScript(axe)
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      const troubles: string[] = []
      page.on('pageerror', (error) => troubles.push(String(error)))
      page.on('console', (message) => {
        // What the hub refuses is shown on the page; the browser notes each such answer as well.
        if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
          troubles.push(message.text())
        }
      })
      return { page, context, troubles, close: () => context.close() }
    },
    close: async () => {
      await browser.close()
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

/** Keeps a picture where `HOLDFAST_SCREENSHOTS` names a folder: those of docs/dashboard.md are made so. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env['HOLDFAST_SCREENSHOTS']
  if (folder === undefined || folder === '' || name.startsWith('-')) return
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${name}.png`)
  // Of several of a kind the first is kept.
  if (!existsSync(path)) await page.screenshot({ path })
}

/** Nothing on the page keeps anybody out (or, where the rest was looked at, no colour of it), by the rules of WCAG 2.2 A and AA and the good practices of axe. */
export async function expectAccessible(
  page: Page,
  what: string,
  rules: 'all' | 'colours' = 'all',
): Promise<void> {
  const options =
    rules === 'all' ? {} : { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } }
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(options)})`)) as AxeResults
  const found = violations.map(({ id, help, nodes }) => ({
    id,
    help,
    nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`),
  }))
  expect(found, what).toEqual([])
}
