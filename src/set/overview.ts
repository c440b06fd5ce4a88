import type { HubCalls } from '../contract/hub.js'
import { type ListName, listNames, type Overview } from '../contract/overview.js'
import { askAll, type Members } from './members.js'

/** What shows a set at a glance: sums, and of ages and what a node was worst at the worst. */
export function overviewCalls(members: Members): Pick<HubCalls, 'overview'> {
  return {
    overview: async () => {
      const all = await askAll(members, ({ calls }) => calls.overview())
      const [first, ...others] = all.map(({ value }) => value) as [Overview, ...Overview[]]
      return { ...others.reduce(bothOf, first), hub: members.names.join(',') }
    },
  }
}

function bothOf(one: Overview, other: Overview): Overview {
  const sum = (figure: (overview: Overview) => number) => figure(one) + figure(other)
  return {
    hub: one.hub,
    at: Math.max(one.at, other.at),
    recipients: sum(({ recipients }) => recipients),
    deliveries: sumsOf(one.deliveries, other.deliveries),
    attempts: sumsOf(one.attempts, other.attempts),
    pruned: sum(({ pruned }) => pruned),
    takeovers: sum(({ takeovers }) => takeovers),
    lateReports: sum(({ lateReports }) => lateReports),
    attemptReplays: sum(({ attemptReplays }) => attemptReplays),
    effectTakeovers: sumsOf(one.effectTakeovers, other.effectTakeovers),
    resolutions: sum(({ resolutions }) => resolutions),
    lists: listsOf(one.lists, other.lists),
    hosts: sum(({ hosts }) => hosts),
    strandedHosts: sum(({ strandedHosts }) => strandedHosts),
    fences: sum(({ fences }) => fences),
    effectsExecuting: sum(({ effectsExecuting }) => effectsExecuting),
    nodes: nodesOf(one.nodes, other.nodes),
  }
}

/** Members of both, each added up. */
function sumsOf<Name extends string>(
  one: Record<Name, number>,
  other: Record<Name, number>,
): Record<Name, number> {
  const names = Object.keys(one) as Name[]
  return Object.fromEntries(names.map((name) => [name, one[name] + other[name]])) as Record<Name, number>
}

function listsOf(one: Overview['lists'], other: Overview['lists']): Overview['lists'] {
  const both = (name: ListName) => {
    const [{ count, oldestAgeMs }, { count: more, oldestAgeMs: age }] = [one[name], other[name]]
    return {
      ...(count === undefined || more === undefined ? {} : { count: count + more }),
      oldestAgeMs: Math.max(oldestAgeMs, age),
    }
  }
  return Object.fromEntries(listNames.map((name) => [name, both(name)])) as Overview['lists']
}

/** The mean of a mirror's commits is that of the hub where it is worst: how many they were is not told. */
function nodesOf(one: Overview['nodes'], other: Overview['nodes']): Overview['nodes'] {
  const worst = (figure: (nodes: Overview['nodes']) => number) => Math.max(figure(one), figure(other))
  return {
    live: one.live + other.live,
    silent: one.silent + other.silent,
    blockingLongestMs: worst(({ blockingLongestMs }) => blockingLongestMs),
    progressAgeMs: worst(({ progressAgeMs }) => progressAgeMs),
    mirrorMeanMs: worst(({ mirrorMeanMs }) => mirrorMeanMs),
    mirrorLongestMs: worst(({ mirrorLongestMs }) => mirrorLongestMs),
  }
}
