import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'

/** One line of a chart. */
export interface Line {
  readonly name: string
  /** A variable of the style sheet. */
  readonly colour: string
  /** Told from the others without colour, too. */
  readonly dash?: readonly number[]
  readonly values: readonly number[]
}

interface ChartProps {
  readonly label: string
  readonly unit: string
  /** Unix ms. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
}

const height = 180

/** Lines over time. What it shows is said in words too, for those who do not see it. */
export function Chart({ label: title, unit, times, lines }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | undefined>(undefined)
  const data = useRef<uPlot.AlignedData>([[]])
  data.current = [times.map((time) => time / 1000), ...lines.map(({ values }) => [...values])]
  const names = lines.map(({ name }) => name).join('|')

  useEffect(() => {
    const element = box.current
    if (element === null) return
    let isGone = false
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const make = async () => {
      const { default: UPlot } = await import('uplot')
      if (isGone) return
      chart.current?.destroy()
      // As painted: a variable's own text names the colours of both themes.
      const colour = (variable: string) => {
        element.style.color = `var(${variable})`
        const painted = getComputedStyle(element).color
        element.style.removeProperty('color')
        return painted
      }
      const axis = {
        stroke: colour('--muted'),
        grid: { stroke: colour('--line'), width: 1 },
        ticks: { show: false },
      }
      chart.current = new UPlot(
        {
          width: element.clientWidth,
          height,
          legend: {
            markers: { width: 2, dash: (_, at) => (lines[at - 1]?.dash === undefined ? 'solid' : 'dashed') },
          },
          cursor: { y: false },
          scales: { y: { range: (_, least, most) => [Math.min(0, least), Math.max(most * 1.1, 1)] } },
          axes: [
            { ...axis, values: (_, splits) => splits.map((seconds) => label(seconds, splits)) },
            { ...axis, size: 52 },
          ],
          series: [
            { value: '{HH}:{mm}:{ss}' },
            ...lines.map(({ name, colour: variable, dash }) => ({
              label: name,
              stroke: colour(variable),
              width: 2,
              ...(dash === undefined ? {} : { dash: [...dash] }),
              points: { show: false },
              value: (_: uPlot, value: number | null) => (value === null ? '–' : `${round(value)} ${unit}`),
            })),
          ],
        },
        data.current,
        element,
      )
    }
    void make()
    const resizing = new ResizeObserver(() => {
      if (element.clientWidth > 0) chart.current?.setSize({ width: element.clientWidth, height })
    })
    resizing.observe(element)
    const again = () => void make()
    scheme.addEventListener('change', again)
    document.documentElement.addEventListener('themechange', again)
    return () => {
      isGone = true
      resizing.disconnect()
      scheme.removeEventListener('change', again)
      document.documentElement.removeEventListener('themechange', again)
      chart.current?.destroy()
      chart.current = undefined
    }
  }, [names, unit])

  useEffect(() => {
    chart.current?.setData(data.current)
  }, [times.at(-1), times.length])

  const said = lines.map(({ name, values }) => `${name} ${round(values.at(-1) ?? 0)} ${unit}`.trim())
  return (
    <figure class="chart">
      <div ref={box} aria-hidden="true" />
      <figcaption class="hidden">
        {title}; now: {said.join(', ')}
      </figcaption>
    </figure>
  )
}

/** With seconds where the marks are closer than a minute. */
function label(seconds: number, splits: readonly number[]): string {
  const [first = 0, second = 60] = splits
  const time = new Date(seconds * 1000).toTimeString()
  return time.slice(0, second - first < 60 ? 8 : 5)
}

function round(value: number): number {
  return value < 10 ? Math.round(value * 10) / 10 : Math.round(value)
}
