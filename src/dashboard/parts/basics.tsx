import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Refusal } from '../api.js'
import { clockTime, duration, words } from '../format.js'
import { recordNow } from '../live.js'

/** A sign beside every word of state: colour says nothing that the sign and the word do not. */
const signs: Readonly<Record<string, readonly [sign: string, tone: Tone]>> = {
  queued: ['○', 'calm'],
  claimed: ['◔', 'calm'],
  mirrored: ['◑', 'calm'],
  delivered: ['◕', 'calm'],
  executing: ['▷', 'calm'],
  done: ['✓', 'good'],
  result: ['✓', 'good'],
  free: ['○', 'calm'],
  held: ['‖', 'warn'],
  parked: ['‖', 'warn'],
  fenced: ['‖', 'warn'],
  not_sent: ['↺', 'warn'],
  failed: ['✕', 'bad'],
  terminal: ['✕', 'bad'],
  unknown: ['?', 'bad'],
  outcome_unknown: ['?', 'bad'],
  stranded: ['!', 'bad'],
  overdue: ['!', 'bad'],
  live: ['●', 'good'],
  open: ['●', 'good'],
  ok: ['✓', 'good'],
  left: ['–', 'calm'],
  closed: ['–', 'calm'],
  missing: ['✕', 'bad'],
  silent: ['!', 'bad'],
  late: ['!', 'bad'],
  wrong: ['!', 'bad'],
  drained: ['‖', 'warn'],
  retired: ['–', 'calm'],
  pause: ['‖', 'warn'],
  hold: ['‖', 'warn'],
  block: ['✕', 'bad'],
}
export type Tone = 'calm' | 'good' | 'warn' | 'bad'

export function Badge({ word, label }: { word: string; label?: string }) {
  const [sign, tone] = signs[word] ?? ['·', 'calm']
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{sign}</span> {label ?? words(word)}
    </span>
  )
}

/** How long ago something was; its time on hover and for programs. */
export function Age({ at, ago = false }: { at: number | undefined; ago?: boolean }) {
  if (at === undefined) return <span class="muted">–</span>
  const age = duration(Math.max(0, recordNow() - at))
  return (
    <time dateTime={new Date(at).toISOString()} title={clockTime(at)}>
      {ago ? `${age} ago` : age}
    </time>
  )
}

export function Time({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} class="mono">
      {clockTime(at)}
    </time>
  )
}

/** Names and their values; what is undefined is left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}

/** What was refused: why, and what to do. */
export function RefusalNote({ refusal, title }: { refusal: Refusal; title?: string }) {
  return (
    <div class="note bad" role="alert">
      <strong>
        {title === undefined ? '' : `${title} `}
        <span class="mono">{refusal.code}</span>
      </strong>
      <p>{refusal.message}</p>
      {refusal.next !== '' && <p>Next: {refusal.next}</p>}
    </div>
  )
}

export function Note({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <div class={`note ${tone}`}>{children}</div>
}

/** Puts a text into the clipboard, and says so. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [said, say] = useState('')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      say('Copied')
    } catch {
      say('Not allowed here')
    }
    setTimeout(() => say(''), 2000)
  }
  return (
    <button type="button" class="quiet" title={text} onClick={copy}>
      {label}
      <span role="status" class="said">
        {said}
      </span>
    </button>
  )
}

/** A panel with a heading of its own. */
export function Panel(props: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  const id = `panel-${props.title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`
  return (
    <section class="panel" aria-labelledby={id}>
      <header>
        <h2 id={id}>{props.title}</h2>
        <div class="aside">{props.aside}</div>
      </header>
      {props.children}
    </section>
  )
}

/** The head of a screen: what it shows, and what may be done there. */
export function Head(props: { title: string; aside?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <header class="head">
      <div>
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.children}
      </div>
      <div class="aside">{props.aside}</div>
    </header>
  )
}
