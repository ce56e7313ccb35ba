// node src/dev/build.mjs [FOLDER], by `npm run build`: dist/server.js and dist/cli/ops.js with what they need from
// node_modules, since a bundle starts sooner than hundreds of files.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { build } from 'esbuild'
import { tsImport } from 'tsx/esm/api'

const { renderGuide } = await tsImport('../docs/render-guide.ts', import.meta.url)

const folder = process.argv[2] ?? 'dist'
rmSync(folder, { recursive: true, force: true })
await build({
  entryPoints: ['src/server.ts', 'src/cli/ops.ts'],
  outbase: 'src',
  outdir: folder,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Node.js 21 and later have `navigator`. Without it pg makes a Response to detect Cloudflare, which loads Node.js
  // 20's fetch and makes a start longer.
  define: { navigator: JSON.stringify({ userAgent: 'Node.js' }) },
  external: [
    'pg-native',
    // The guides are rendered below, so a server needs no renderer.
    './src/docs/render-guide.ts',
    // Fastify loads these for JSON Schemas, which every instance does without (NO_JSON_SCHEMA), and for `inject`: in
    // the bundle they delay the start.
    '@fastify/ajv-compiler',
    '@fastify/fast-json-stringify-compiler',
    'light-my-request',
  ],
  // Libraries in CommonJS require the modules of Node.js.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'\nconst require = requireFrom(import.meta.url)",
  },
  logLevel: 'warning',
})
cpSync('src/db/grants.sql', `${folder}/grants.sql`)
cpSync('src/checkout/page', `${folder}/page`, { recursive: true })
cpSync('src/docs/ui', `${folder}/ui`, { recursive: true })
cpSync('src/docs/guides', `${folder}/guides`, { recursive: true })
for (const file of readdirSync('src/docs/guides')) {
  const html = renderGuide(readFileSync(`src/docs/guides/${file}`, 'utf8'))
  writeFileSync(`${folder}/guides/${file.replace(/md$/, 'html')}`, html)
}
cpSync('node_modules/openapi-explorer/dist/browser/openapi-explorer.min.js', `${folder}/ui/openapi-explorer.min.js`)
cpSync('node_modules/openapi-explorer/LICENSE', `${folder}/ui/openapi-explorer.LICENSE`)
