import { render } from 'preact'
import { useEffect } from 'preact/hooks'
import { isUnknownHere } from './api.js'
import { begin, followOverview, hubs, me, trouble } from './hub.js'
import { startLive } from './live.js'
import { Shell } from './parts/shell.js'
import { startTheme } from './parts/theme.js'
import { place } from './route.js'
import { DeliveriesScreen } from './screens/deliveries.js'
import { DeliveryScreen } from './screens/delivery.js'
import { HubsScreen, LoginScreen, TroubleScreen } from './screens/door.js'
import { EffectScreen, EffectsScreen } from './screens/effects.js'
import { FencesScreen } from './screens/fences.js'
import { HostScreen } from './screens/host.js'
import { HostsScreen } from './screens/hosts.js'
import { AuditScreen, SettingsScreen, SweepsScreen } from './screens/keeping.js'
import { LogScreen } from './screens/log.js'
import { MessageScreen, MessagesScreen } from './screens/messages.js'
import { OverviewScreen } from './screens/overview.js'
import { HeldScreen, UnknownScreen } from './screens/queues.js'
import { SessionScreen, SessionsScreen } from './screens/sessions.js'
import 'uplot/dist/uPlot.min.css'

function Page() {
  if (isUnknownHere.value) return <LoginScreen />
  if (trouble.value !== undefined) return <TroubleScreen refusal={trouble.value} again={() => void begin()} />
  if (hubs.value !== undefined) return <HubsScreen />
  if (me.value === undefined) return <p class="door">Reading …</p>
  return (
    <Shell>
      <Screen />
    </Shell>
  )
}

function Screen() {
  const { parts } = place.value
  const [name = '', id] = parts
  const at = parts.join('/')
  useEffect(() => {
    const heading = document.querySelector('h1')
    document.title = `${heading?.textContent ?? 'Holdfast'} – Holdfast`
    if (isMoved) heading?.focus()
    isMoved = true
    scrollTo(0, 0)
  }, [at])
  switch (name) {
    case '':
      return <OverviewScreen />
    case 'deliveries':
      return id === undefined ? <DeliveriesScreen /> : <DeliveryScreen id={id} />
    case 'messages':
      return id === undefined ? <MessagesScreen /> : <MessageScreen id={id} />
    case 'held':
      return <HeldScreen />
    case 'unknown':
      return <UnknownScreen />
    case 'fences':
      return <FencesScreen />
    case 'hosts':
      return id === undefined ? <HostsScreen /> : <HostScreen host={id} />
    case 'sessions':
      return id === undefined ? <SessionsScreen /> : <SessionScreen id={id} />
    case 'effects':
      return id === undefined ? <EffectsScreen /> : <EffectScreen id={id} />
    case 'sweeps':
      return <SweepsScreen />
    case 'audit':
      return <AuditScreen />
    case 'log':
      return <LogScreen />
    case 'settings':
      return <SettingsScreen />
    default:
      return (
        <>
          <h1 tabIndex={-1}>No such screen</h1>
          <p>The address names {at}. The screens are at the side.</p>
        </>
      )
  }
}

/** The first screen takes no focus: whoever opens the page begins at its top. */
let isMoved = false

startTheme()
startLive(() => me.value !== undefined && !isUnknownHere.value)
followOverview()
void begin()
const root = document.getElementById('page')
if (root !== null) render(<Page />, root)
