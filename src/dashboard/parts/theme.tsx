import { useEffect, useState } from 'preact/hooks'

type Theme = 'auto' | 'light' | 'dark'
const themes: readonly Theme[] = ['auto', 'light', 'dark']
const themeKey = 'holdfast.theme'

export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(storedTheme)
  useEffect(() => {
    applyTheme(theme)
  }, [theme])
  return (
    <label class="theme">
      <span class="hidden">Theme</span>
      <select value={theme} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
        {themes.map((each) => (
          <option key={each} value={each}>
            {each === 'auto' ? 'Theme: as the system' : `Theme: ${each}`}
          </option>
        ))}
      </select>
    </label>
  )
}

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(themeKey)
    return themes.find((each) => each === stored) ?? 'auto'
  } catch {
    return 'auto'
  }
}

function applyTheme(theme: Theme): void {
  const root = document.documentElement
  if (theme === 'auto') delete root.dataset['theme']
  else root.dataset['theme'] = theme
  try {
    localStorage.setItem(themeKey, theme)
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  root.dispatchEvent(new Event('themechange'))
}

/** Before the first paint, so that nothing flashes. */
export function startTheme(): void {
  applyTheme(storedTheme())
}
