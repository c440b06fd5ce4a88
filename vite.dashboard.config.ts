import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

// The page, built into dist/dashboard by scripts/build.mjs. Its URLs are relative: it works under any path.
export default defineConfig({
  root: fileURLToPath(new URL('src/dashboard', import.meta.url)),
  base: './',
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    outDir: fileURLToPath(new URL('dist/dashboard', import.meta.url)),
    emptyOutDir: true,
    sourcemap: false,
    modulePreload: { polyfill: false },
    // What is inlined would be refused by the page's own rules about where fonts and scripts come from.
    assetsInlineLimit: 0,
  },
})
