import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const luaDir = fileURLToPath(new URL('../../lua', import.meta.url))

/** One fault put into the function library: a text of one file, and what stands there instead. */
export interface Mutant {
  readonly name: string
  /** Under `lua/`. */
  readonly file: string
  readonly text: string
  readonly becomes: string
  /** The sequence of test/model/mutants.test.ts that is known to catch it. */
  readonly caughtBy: number
}

/** Faults that would break a promise of the contract; the model test must catch every one. */
export const mutants: readonly Mutant[] = [
  {
    name: 'no epoch check',
    file: 'lib/deliveries.lua',
    text: "  if row.epoch ~= epoch then return 'STALE_EPOCH' end\n",
    becomes: '',
    caughtBy: 2,
  },
  {
    name: 'no incarnation check',
    file: 'lib/deliveries.lua',
    text: 'if row.owner ~= node.id or row.incarnation ~= node.incarnation then',
    becomes: 'if row.owner ~= node.id then',
    caughtBy: 33,
  },
  {
    name: 'no grant check',
    file: 'lib/report.lua',
    text: 'if attempt.grant ~= report.grant or attempt.node ~= node.name then',
    becomes: 'if attempt.node ~= node.name then',
    caughtBy: 0,
  },
  {
    name: 'settled by another node',
    file: 'lib/report.lua',
    text: 'if attempt.grant ~= report.grant or attempt.node ~= node.name then',
    becomes: 'if attempt.grant ~= report.grant then',
    caughtBy: 22,
  },
  {
    name: 'no fence in begin',
    file: 'lib/begin.lua',
    text: "  local fence = hf.fence_over(ctx, row)\n  if fence and fence.kind ~= 'pause' then\n",
    becomes: "  local fence = nil\n  if fence and fence.kind ~= 'pause' then\n",
    caughtBy: 0,
  },
  {
    name: 'fence of begin looked at after the write',
    file: 'lib/begin.lua',
    text: "  if fence then return hf.item_refused(id, 'PAUSED', row, fence.field) end\n  return open_attempt(ctx, node, row, grant)",
    becomes:
      "  local opened = open_attempt(ctx, node, row, grant)\n  if fence then return hf.item_refused(id, 'PAUSED', row, fence.field) end\n  return opened",
    caughtBy: 0,
  },
  {
    name: 'no fence in claim',
    file: 'lib/claim.lua',
    text: '  local fence = hf.fence_over(ctx, row)\n',
    becomes: '  local fence = nil\n',
    caughtBy: 1,
  },
  {
    name: 'a second grant while one is open',
    file: 'lib/begin.lua',
    text: "  if hf.is_executing(row) then return hf.item_refused(id, 'GRANT_OPEN', row) end\n",
    becomes: '',
    caughtBy: 19,
  },
  {
    name: 'takeover of an open attempt',
    file: 'lib/recover.lua',
    text: '      if hf.is_executing(row) then\n',
    becomes: '      if false then\n',
    caughtBy: 35,
  },
  {
    name: 'later deliveries pass parked ones of their lane',
    file: 'lib/claim.lua',
    text: "  elseif hf.lane_is_parked(ctx, claim, lane) then\n    hf.park(ctx, claim, row, lane, 'lane')\n",
    becomes: '',
    caughtBy: 56,
  },
  {
    name: 'a lane turned round by parking',
    file: 'lib/park.lua',
    text: '  table.insert(claim.parking[lane], row.id)\n',
    becomes: '  table.insert(claim.parking[lane], 1, row.id)\n',
    caughtBy: 6,
  },
  {
    name: 'parked but not acknowledged',
    file: 'lib/park.lua',
    text: '  claim.acknowledge[#claim.acknowledge + 1] = row.entry\n',
    becomes: '',
    caughtBy: 1,
  },
  {
    name: 'a lift that wakes nobody',
    file: 'functions/lift.lua',
    text: "      hf.ring(ctx, host, 'lift')\n",
    becomes: '',
    caughtBy: 8,
  },
  {
    name: 'release of what is not held',
    file: 'lib/held.lua',
    text: "  if row.state ~= 'held' then hf.refuse('NOT_HELD', describe(row)) end\n",
    becomes: '',
    caughtBy: 4,
  },
  {
    name: 'a hold under the old epoch',
    file: 'lib/deliveries.lua',
    text: "  local epoch = hf.next_epoch(ctx, row.epoch)\n  hf.write_delivery(ctx, row, 'held'",
    becomes: "  local epoch = row.epoch\n  hf.write_delivery(ctx, row, 'held'",
    caughtBy: 3,
  },
  {
    name: 'crashes not forgotten on settle',
    file: 'lib/report.lua',
    text: '  if row.takeovers > 0 then\n',
    becomes: '  if false then\n',
    caughtBy: 38,
  },
  {
    name: 'counts that drift',
    file: 'lib/deliveries.lua',
    text: '    hf.count(ctx, from, -1)\n',
    becomes: '',
    caughtBy: 0,
  },
  {
    name: 'report keys forgotten',
    file: 'lib/report.lua',
    text: '  if known then return known end\n',
    becomes: '',
    caughtBy: 2,
  },
  {
    name: 'a late report overwrites',
    file: 'lib/report.lua',
    text: "  if attempt.status ~= 'executing' then return keep_late(ctx, row, attempt, report) end\n",
    becomes: '',
    caughtBy: 0,
  },
  {
    name: 'idempotency key without its fingerprint',
    file: 'lib/accept.lua',
    text: '  if fingerprint ~= header.fingerprint then\n',
    becomes: '  if false then\n',
    caughtBy: 0,
  },
  {
    name: 'fan-out that owes for ever',
    file: 'lib/fan_out.lua',
    text: "    redis.call('LTRIM', hf.key.recipients(ctx.tag, id), #owed, -1)\n",
    becomes: '',
    caughtBy: 5,
  },
  {
    name: 'a repeated request claims anew',
    file: 'lib/claim.lua',
    text: '  if request == node.request then return answer_again(ctx, claim) end\n',
    becomes: '',
    caughtBy: 0,
  },
]

/**
 * A copy of `lua/` with the fault in it; the caller removes the folder.
 * @throws Error when the text is not found exactly once: the library changed, and the mutant must follow
 */
export function makeMutant(mutant: Mutant): { readonly luaDir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-mutant-'))
  cpSync(luaDir, dir, { recursive: true })
  const path = join(dir, mutant.file)
  const source = readFileSync(path, 'utf8')
  const pieces = source.split(mutant.text)
  if (pieces.length !== 2) {
    rmSync(dir, { recursive: true })
    throw new Error(
      `mutant "${mutant.name}": its text stands ${pieces.length - 1} times in lua/${mutant.file}`,
    )
  }
  writeFileSync(path, pieces.join(mutant.becomes))
  return { luaDir: dir, remove: () => rmSync(dir, { recursive: true, force: true }) }
}
