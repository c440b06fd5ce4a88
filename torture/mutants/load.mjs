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
