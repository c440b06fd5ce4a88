// A strict reader of the part of PromQL that docs/operations uses. What it does not know is an error.

export interface Selector {
  readonly metric: string
  readonly matchers: readonly { readonly label: string; readonly op: string; readonly value: string }[]
  /** Set where it has one, such as `5m`. */
  readonly range: string | undefined
}

/** What an expression uses. */
export interface Expression {
  readonly selectors: readonly Selector[]
  /** Labels of `by (…)`. */
  readonly grouped: readonly string[]
  /** Labels that its result has; undefined where it is not an aggregation. */
  readonly resultLabels: readonly string[] | undefined
}

const aggregations = new Set(['sum', 'max', 'min', 'avg', 'count'])
/** Functions by what they are given: a range, a vector, or a number and a vector. */
const functions: Readonly<Record<string, 'range' | 'vector' | 'scaled'>> = {
  rate: 'range',
  increase: 'range',
  delta: 'range',
  absent: 'vector',
  histogram_quantile: 'scaled',
}
const operators: readonly (readonly string[])[] = [
  ['or'],
  ['and', 'unless'],
  ['==', '!=', '>', '<', '>=', '<='],
  ['+', '-'],
  ['*', '/'],
]
const token =
  /\s*(?:("(?:[^"\\]|\\.)*")|(\d+(?:\.\d+)?(?![\w.]))|(\[(?:\d+[smhd]|\$__rate_interval)\])|([A-Za-z_:][\w:]*)|(=~|!~|==|!=|>=|<=|[-+*/<>=(){},]))/y

type Kind = 'vector' | 'range' | 'number'

/** @throws Error with what is wrong, and where */
export function parsePromql(text: string): Expression {
  const words = wordsOf(text)
  const selectors: Selector[] = []
  const grouped: string[] = []
  let at = 0

  const fail = (what: string): never => {
    throw new Error(`${what} at word ${at + 1} (${words[at] ?? 'the end'}) of: ${text}`)
  }
  const take = (): string => words[at++] ?? fail('an end too early')
  const expectWord = (word: string) => {
    if (words[at] !== word) fail(`not ${word}`)
    at += 1
  }

  interface Part {
    readonly kind: Kind
    readonly labels?: readonly string[] | undefined
  }

  function binary(level: number): Part {
    const ops = operators[level]
    if (ops === undefined) return primary()
    let left = binary(level + 1)
    while (ops.includes(words[at] ?? '')) {
      const op = take()
      const right = binary(level + 1)
      if (left.kind === 'range' || right.kind === 'range') fail('a range as an operand')
      if (level < 2 && (left.kind !== 'vector' || right.kind !== 'vector')) fail(`${op} of a number`)
      const both = left.kind === 'vector' && right.kind === 'vector'
      if (both && String(left.labels) !== String(right.labels)) fail(`${op} of sides with other labels`)
      left = left.kind === 'vector' ? left : right
    }
    return left
  }

  function primary(): Part {
    const word = take()
    if (/^\d/.test(word)) return { kind: 'number' }
    if (word === '(') {
      const inner = binary(0)
      expectWord(')')
      return inner
    }
    if (aggregations.has(word)) return aggregation()
    const takes = functions[word]
    if (takes !== undefined) return call(takes)
    if (words[at] === '(') fail(`no function ${word} is known`)
    if (!/^[a-z]/.test(word)) fail('no name of a metric')
    return selector(word)
  }

  function aggregation(): Part {
    expectWord('by')
    expectWord('(')
    const labels = [take()]
    while (words[at] === ',') {
      at += 1
      labels.push(take())
    }
    expectWord(')')
    expectWord('(')
    if (binary(0).kind !== 'vector') fail('an aggregation of no vector')
    expectWord(')')
    grouped.push(...labels)
    return { kind: 'vector', labels }
  }

  function call(takes: 'range' | 'vector' | 'scaled'): Part {
    expectWord('(')
    if (takes === 'scaled') {
      const share = Number(take())
      if (!(share > 0 && share < 1)) fail('a quantile that is none')
      expectWord(',')
    }
    const given = binary(0)
    if (given.kind !== (takes === 'range' ? 'range' : 'vector')) fail('a function of another kind of value')
    expectWord(')')
    if (takes !== 'scaled') return { kind: 'vector', labels: given.labels }
    if (!given.labels?.includes('le')) fail('a quantile without le')
    return { kind: 'vector', labels: given.labels?.filter((label) => label !== 'le') }
  }

  function selector(metric: string): Part {
    const matchers: { label: string; op: string; value: string }[] = []
    if (words[at] === '{') {
      do {
        at += 1
        const [label, op, value] = [take(), take(), take()]
        if (!/^[a-z_]\w*$/.test(label) || !['=', '!=', '=~', '!~'].includes(op) || !value.startsWith('"'))
          fail('no matcher of a label')
        matchers.push({ label, op, value: JSON.parse(value) as string })
      } while (words[at] === ',')
      expectWord('}')
    }
    const range = words[at]?.startsWith('[') ? take().slice(1, -1) : undefined
    selectors.push({ metric, matchers, range })
    return { kind: range === undefined ? 'vector' : 'range' }
  }

  const whole = binary(0)
  if (at < words.length) fail('more than an expression')
  if (whole.kind !== 'vector') fail('no vector')
  return { selectors, grouped, resultLabels: whole.labels }
}

function wordsOf(text: string): string[] {
  const words: string[] = []
  token.lastIndex = 0
  while (token.lastIndex < text.trimEnd().length) {
    const from = token.lastIndex
    const match = token.exec(text)
    if (match === null)
      throw new Error(`not PromQL: ${JSON.stringify(text.slice(from, from + 30))} in ${text}`)
    words.push(match.slice(1).find((word) => word !== undefined) ?? '')
  }
  return words
}
