import { fileURLToPath } from 'node:url'
import { anyNode } from './any-node.js'

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const flags = (run: object) => Object.entries(run).flatMap(([name, value]) => [`--${name}`, String(value)])

anyNode('holdfast node --exec', (run) => [process.execPath, file('dist/cli/main.js'), 'node', ...flags(run)])
anyNode('examples/python-node', (run) => ['python3', file('examples/python-node/node.py'), ...flags(run)])
