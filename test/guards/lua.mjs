// @ts-check
// As much of Lua as the guards of lua/ need: its words, and what stands in which branch of which function.

/** A word of the source, with the place where it begins and ends. @typedef {{ text: string, from: number, to: number }} Token */

/**
 * What a block begins with: a function, a branch of an `if`, or anything else that an `end` closes.
 * `tokens` are those of the block itself, without its inner blocks; `condition` those between `if` and `then`.
 * @typedef {{ kind: 'file' | 'function' | 'branch' | 'else' | 'other', name: string, condition: Token[], tokens: Token[],
 *   from: number, to: number, parent: Block | undefined }} Block
 */

const WORD =
  /--[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[A-Za-z_]\w*|\d[\w.]*|\.\.\.|\.\.|[=~<>]=|[^\s\w]/g

/** @param {string} source @returns {Token[]} without comments */
export function tokensOf(source) {
  const tokens = []
  for (const match of source.matchAll(WORD)) {
    const [text] = match
    if (!text.startsWith('--')) tokens.push({ text, from: match.index, to: match.index + text.length })
  }
  return tokens
}

/**
 * Every block of a source, each after the one around it.
 * @param {string} source @returns {Block[]}
 * @throws Error where blocks and their ends do not match
 */
export function blocksOf(source) {
  const tokens = tokensOf(source)
  /** @type {Block[]} */
  const blocks = []
  /** @param {Block['kind']} kind @param {string} name @param {number} from @param {Block | undefined} parent */
  const open = (kind, name, from, parent) => {
    /** @type {Block} */
    const block = { kind, name, condition: [], tokens: [], from, to: source.length, parent }
    blocks.push(block)
    return block
  }
  let block = open('file', '', 0, undefined)
  /** @param {Token} token */
  const close = (token) => {
    block.to = token.from
    if (block.parent === undefined) throw new Error(`an "${token.text}" too many`)
    block = block.parent
  }
  for (let at = 0; at < tokens.length; at += 1) {
    const token = /** @type {Token} */ (tokens[at])
    switch (token.text) {
      case 'function':
        block.tokens.push(token)
        block = open('function', nameOf(tokens, at), token.to, block)
        break
      case 'if':
      case 'elseif': {
        if (token.text === 'elseif') close(token)
        const then = tokens.findIndex(({ text }, place) => place > at && text === 'then')
        block = open('branch', token.text, tokens[then]?.to ?? 0, block)
        block.condition = tokens.slice(at + 1, then)
        at = then
        break
      }
      case 'else':
        close(token)
        block = open('else', 'else', token.to, block)
        break
      case 'do':
      case 'repeat':
        block = open('other', token.text, token.to, block)
        break
      case 'end':
      case 'until':
        close(token)
        break
      default:
        block.tokens.push(token)
    }
  }
  if (block.parent !== undefined) throw new Error(`a ${block.kind} without its end`)
  return blocks
}

/** The name that a function is given, or under which it is registered; empty for one without. @param {Token[]} tokens @param {number} at */
function nameOf(tokens, at) {
  const words = []
  for (let place = at + 1; tokens[place]?.text !== '('; place += 1) words.push(tokens[place]?.text)
  if (words.length > 0) return words.join('').replace(/^hf\./, '')
  const registered = tokens.slice(Math.max(0, at - 12), at).findLast(({ text }) => /^'hf_\w+'$/.test(text))
  return registered === undefined ? '' : registered.text.slice(1, -1)
}

/** The innermost function of a name around a block, or the file. @param {Block} block @returns {Block} */
export function functionOf(block) {
  if (block.parent === undefined || (block.kind === 'function' && block.name !== '')) return block
  return functionOf(block.parent)
}

/** Splits at a word that stands in no bracket. @param {Token[]} tokens @param {string} word @returns {Token[][]} */
export function splitAt(tokens, word) {
  /** @type {Token[][]} */
  const parts = [[]]
  let depth = 0
  for (const token of tokens) {
    if ('({['.includes(token.text)) depth += 1
    if (')}]'.includes(token.text)) depth -= 1
    if (depth === 0 && token.text === word) parts.push([])
    else parts.at(-1)?.push(token)
  }
  return parts
}

/** Where words begin and end. @param {Token[]} tokens @returns {{ from: number, to: number }} */
export function spanOf(tokens) {
  return { from: tokens[0]?.from ?? 0, to: tokens.at(-1)?.to ?? 0 }
}

/** No operand goes beyond these. */
export const ENDS = new Set(
  'and or not if elseif while then return = , ( { [ local end do in until'.split(' '),
)
/** What stands before a value, and never before a statement. */
export const BEFORE_VALUES = new Set([...ENDS, ...'.. # + - * / % . : == ~= < > <= >= function'.split(' ')])

/** Where the bracket at a place closes. @param {Token[]} tokens @param {number} at */
export function closing(tokens, at) {
  let depth = 0
  for (const { text, to } of tokens.slice(at)) {
    if ('({['.includes(text)) depth += 1
    if (')}]'.includes(text)) depth -= 1
    if (depth === 0) return to
  }
  throw new Error('a bracket without its end')
}

/** Words as they stand in the source, blocks between them left out. @param {string} source @param {Token[]} tokens */
export function wordsOf(source, tokens) {
  return tokens
    .map(({ text, from }, at) => {
      const isNext = source.slice(tokens[at - 1]?.to ?? 0, from) === ''
      return isNext ? text : ` ${text}`
    })
    .join('')
}

/** On one line. @param {string} text */
export function plain(text) {
  return text.replaceAll(/\s+/g, ' ')
}
