import { isUtf8 } from 'node:buffer'
import type { Readable } from 'node:stream'

/** What is kept of a stream that is read to its end. */
export interface Capture {
  /** The first bytes. */
  head(): Buffer
  /** The last bytes as text, from a whole character on. */
  tail(): string
  total(): number
}

export function capture(stream: Readable, headBytes: number, tailBytes: number): Capture {
  const head: Buffer[] = []
  let tail = Buffer.alloc(0)
  let total = 0
  stream.on('data', (chunk: Buffer) => {
    if (total < headBytes) head.push(chunk.subarray(0, headBytes - total))
    total += chunk.length
    tail = Buffer.concat([tail, chunk.subarray(-tailBytes)])
    tail = tail.subarray(-tailBytes)
  })
  return {
    head: () => Buffer.concat(head),
    tail: () => tail.subarray(total > tail.length ? firstWhole(tail) : 0).toString(),
    total: () => total,
  }
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80

/** Where the first whole UTF-8 character begins: at most three bytes belong to one that was cut. */
function firstWhole(bytes: Buffer): number {
  let start = 0
  while (start < 3 && isContinuation(bytes[start])) start++
  return start
}

/** The first bytes, at most `limit`, no UTF-8 character cut. */
export function wholeCharacters(bytes: Buffer, limit: number): Buffer {
  let end = Math.min(limit, bytes.length)
  while (end > Math.max(0, limit - 3) && isContinuation(bytes[end])) end--
  return bytes.subarray(0, end)
}

// Outcomes

export function stdoutFields(kept: Buffer, total: number) {
  return {
    ...(isUtf8(kept) ? { stdout: kept.toString() } : { stdoutBase64: kept.toString('base64') }),
    ...(kept.length < total && { truncated: true, stdoutBytes: total }),
  }
}
