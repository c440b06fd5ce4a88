// Payloads as people read them.

/** JSON with a line for each member. Its words stay as they are: parsing would lose digits of large numbers. */
export function laidOut(json: string): string {
  let out = ''
  let depth = 0
  const line = () => `\n${'  '.repeat(depth)}`
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"[\]{},:]+|[[\]{},:]/g)) {
    if (token === '{' || token === '[') {
      depth += 1
      out += token + line()
    } else if (token === '}' || token === ']') {
      depth -= 1
      out = /[[{]\s*$/.test(out) ? out.trimEnd() + token : out + line() + token
    } else if (token === ',') out += token + line()
    else if (token === ':') out += ': '
    else out += token
  }
  return out
}

/** Offset, sixteen bytes, and what of them can be read. */
export function hex(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let first = 0; first < bytes.length; first += 16) {
    const row = [...bytes.subarray(first, first + 16)]
    const pairs = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${first.toString(16).padStart(8, '0')}  ${pairs.padEnd(47)}  ${text}`)
  }
  return lines.join('\n')
}
