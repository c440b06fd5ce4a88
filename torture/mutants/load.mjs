// @ts-check
// Loads under which a rare order of events comes often. They change what processes of a run ask for, and break nothing.

/** An operator who holds and lifts many times a second. @type {readonly import('./list.mjs').Edit[]} */
export const shortHolds = [
  {
    file: 'torture/processes/operator.mjs',
    text: '  hold: { weight: 4, least: 100, most: 1000 },\n',
    becomes: '  hold: { weight: 90, least: 20, most: 150 },\n',
  },
  {
    file: 'torture/processes/operator.mjs',
    text: 'const thinkMs = { least: 50, most: 400 }\n',
    becomes: 'const thinkMs = { least: 5, most: 40 }\n',
  },
]

/** Every node's calls arrive a second time, most of the time. @type {readonly import('./list.mjs').Edit[]} */
export const manyCopies = [
  {
    file: 'torture/faults/net-duplicate.mjs',
    text: "{ name: 'net-duplicate', leastMs: 200, longestMs: 3000 }",
    becomes:
      "{ name: 'net-duplicate', leastMs: 2000, longestMs: 3000, restMs: 100, targets: ({ nodes }) => nodes.map((name) => 'node ' + name) }",
  },
  {
    file: 'torture/faults/net-duplicate.mjs',
    text: 'const share = 0.1 + random.next() * 0.6\n',
    becomes: 'const share = 0.5 + random.next() * 0.4\n',
  },
]
