import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

// Every relative link of every page leads to something, and to a heading that is there.

const root = fileURLToPath(new URL('../../', import.meta.url))
const folders = ['docs', 'examples', '.changeset']
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  ),
]

function proseOf(page: string): string {
  return readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '')
}

/** Of each heading the anchor that a reader of the page gets. */
function anchorsOf(page: string): string[] {
  return [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function deadLinksOf(page: string): string[] {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false
    const [path = '', anchor] = link.split('#')
    const target = path === '' ? page : join(dirname(page), path)
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor)
  })
}

it('of every page', () => {
  expect(pages.length).toBeGreaterThan(30)
  const dead = pages.flatMap((page) => deadLinksOf(page).map((link) => `${page}: ${link}`))
  expect(dead).toEqual([])
})

it('README.md leads to every page of docs, and to every example', () => {
  const readme = proseOf('README.md')
  const wanted = pages.filter((page) => /^(docs\/[^/]+|examples\/[^/]+\/README)\.md$/.test(page))
  expect(wanted.filter((page) => !readme.includes(`(${page}`))).toEqual([])
})
