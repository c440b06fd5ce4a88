import { afterAll, afterEach, beforeAll, describe } from 'vitest'
import { stopNodes } from '../support/nodes.js'
import { accepting } from './accepting.js'
import { acts } from './acts.js'
import { administration } from './administration.js'
import { claiming } from './claiming.js'
import type { Environment, Surface } from './environment.js'
import { fences } from './fences.js'
import { lists } from './lists.js'
import { membership } from './membership.js'
import { realNodes } from './real-nodes.js'
import { recovery } from './recovery.js'
import { reporting } from './reporting.js'
import { type Make, stageOn } from './stage.js'
import { steps } from './steps.js'
import { waiting } from './waiting.js'

/**
 * What every way to the record must do alike (contract section 9: one conformance suite, both transports). It
 * speaks through NodeTransport and HubCalls alone; each test has a record of its own, whose invariants hold
 * after it.
 */
export function conformance(name: string, open: () => Promise<Environment>): void {
  describe(name, () => {
    let environment: Environment
    const surfaces: Surface[] = []
    const make: Make = async (settings = {}) => {
      const surface = await environment.makeRecord(settings)
      surfaces.push(surface)
      return stageOn(surface)
    }

    beforeAll(async () => {
      environment = await open()
    })
    afterEach(async () => {
      await stopNodes()
      for (const surface of surfaces.splice(0)) {
        await surface.record.checkInvariants().finally(surface.close)
      }
    })
    afterAll(() => environment?.close())

    describe('membership', () => membership(make))
    describe('claim', () => claiming(make))
    describe('a claim that waits', () => waiting(make))
    describe('steps', () => steps(make))
    describe('report', () => reporting(make))
    describe('recovery', () => recovery(make))
    describe('accept', () => accepting(make))
    describe('fences', () => fences(make))
    describe('acts on deliveries', () => acts(make))
    describe('lists', () => lists(make))
    describe('administration', () => administration(make))
    describe('nodes', () => realNodes(make))
  })
}
