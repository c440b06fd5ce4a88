import { render } from 'preact'
import type { Me } from '../contract/wire.js'

// The page of a hub.

/** The hub that this page is of. */
function Page({ me }: { readonly me: Me }) {
  return <h1>{me.hub}</h1>
}

async function start(): Promise<void> {
  const answer = await fetch('v1/me')
  const root = document.getElementById('page')
  if (root === null || !answer.ok) return
  render(<Page me={(await answer.json()) as Me} />, root)
}

void start()
