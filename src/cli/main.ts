#!/usr/bin/env node
import { tolerateClosedPipes } from './output.js'
import { run } from './run.js'

tolerateClosedPipes()
await run(process.argv.slice(2))
