// Reads the folder of a history. What is damaged or missing is no violation: nothing can be judged then.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Final, Line, LineData } from './words.js'

const fileName = /^(producer|operator|node|marks|hub|conductor)-(.+)-(\d+)\.jsonl$/

/** The history itself cannot be believed. */
export class DamagedHistory extends Error {}

/** @throws DamagedHistory where something is missing, or cannot be read as what it should be */
export function readHistory(dir: string): { readonly lines: Line[]; readonly final: Final } {
  const names = listOf(dir)
  const histories = names.filter((name) => name.endsWith('.jsonl')).sort()
  if (!names.includes('final.json')) throw new DamagedHistory(`${dir} has no final.json: the run did not end`)
  return {
    lines: histories.flatMap((name) => linesOf(name, readFileSync(join(dir, name), 'utf8'))),
    final: finalOf(readFileSync(join(dir, 'final.json'), 'utf8')),
  }
}

function listOf(dir: string): string[] {
  try {
    return readdirSync(dir)
  } catch (error) {
    throw new DamagedHistory(`${dir} cannot be read: ${error instanceof Error ? error.message : error}`)
  }
}

/** Who wrote a file, as its name says. */
type Source = Pick<Line, 'file' | 'role' | 'name' | 'pid'>

/**
 * The lines of one file, whose name is `<role>-<name>-<pid>.jsonl`. A kill may cut the last one short; then it says
 * nothing.
 * @throws DamagedHistory where a line cannot be read, or is of another process
 */
export function linesOf(file: string, text: string): Line[] {
  const [, role = '', name = '', pid = ''] = fileName.exec(file) ?? []
  if (role === '') throw new DamagedHistory(`${file}: no file of a history is named so`)
  const source = { file, role, name, pid: Number(pid) }
  const texts = text.split('\n')
  const rest = texts.pop() ?? ''
  const lines = texts.map((each, at) => lineOf(source, at + 1, each, parsed(each)))
  const last = rest === '' ? undefined : parsed(rest)
  // The conductor outlives everybody; it alone is never killed.
  if (last !== undefined) lines.push(lineOf(source, texts.length + 1, rest, last))
  else if (rest !== '' && role === 'conductor')
    throw new DamagedHistory(`${file} ends in the middle of a line`)
  for (const { number, data } of lines) {
    if (data.role !== role || data.pid !== source.pid) {
      throw new DamagedHistory(`${file}:${number} is a line of ${data.role} ${data.pid}`)
    }
  }
  return lines
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function lineOf(source: Source, number: number, text: string, data: unknown): Line {
  const { file, role, name, pid } = source
  if (typeof data !== 'object' || data === null) {
    throw new DamagedHistory(`${file}:${number} is no line of a history: ${text.slice(0, 80)}`)
  }
  const said = data as LineData
  const { t, kind } = said
  if (typeof t !== 'string' || !/^\d+$/.test(t) || typeof kind !== 'string') {
    throw new DamagedHistory(`${file}:${number} lacks its time or its kind`)
  }
  return { file, number, t: Number(t), role, name, pid, kind, data: said }
}

const lists = ['deliveries', 'messages', 'log', 'unknown', 'held'] as const

/** What the record held at the end, from its JSON. @throws DamagedHistory where a part of it is missing */
function finalOf(text: string): Final {
  const final = parsed(text)
  if (typeof final !== 'object' || final === null) throw new DamagedHistory('final.json is no JSON object')
  const said = final as Partial<Final>
  const missing = lists.filter((name) => !Array.isArray(said[name]))
  if (missing.length > 0) throw new DamagedHistory(`final.json lacks ${missing.join(', ')}`)
  if (!Array.isArray(said.audit?.disagreements) || typeof said.audit.conservation !== 'object') {
    throw new DamagedHistory('final.json lacks its audit')
  }
  return final as Final
}
