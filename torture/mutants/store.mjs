// @ts-check
// What stands below both hubs and nodes: the connection, and the server's own durability.

/** @type {readonly import('./list.mjs').Mutant[]} */
export const storeMutants = [
  {
    name: 'commands sent again by themselves',
    broken: 'The connection sends a command again whose answer was lost, as its library does by default.',
    edits: [
      {
        file: 'dist/record/link.js',
        text: '        maxRetriesPerRequest: 0,\n        autoResendUnfulfilledCommands: false,\n',
        becomes: '        maxRetriesPerRequest: null,\n        autoResendUnfulfilledCommands: true,\n',
      },
    ],
    by: ['I6'],
    faults: ['net-drop-reply'],
    seeds: ['1', '2', '3'],
    seconds: 30,
  },
  {
    name: 'everysec',
    broken: 'The server brings what it acknowledged to the disk once a second: `appendfsync everysec`.',
    edits: [
      {
        file: 'torture/redis.mjs',
        text: "    appendfsync: 'always',\n",
        becomes: "    appendfsync: 'everysec',\n",
      },
    ],
    by: ['I1', 'I8'],
    faults: ['power-cut'],
    seeds: ['1', '2', '3'],
  },
]
