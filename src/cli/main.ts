#!/usr/bin/env node
import { watchOutput } from './output.js'
import { run } from './run.js'

const words = process.argv.slice(2)
watchOutput(words)
await run(words)
