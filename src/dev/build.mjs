// node src/dev/build.mjs [FOLDER], called by `npm run build`, bundles the service and the operator commands with their
// libraries into FOLDER (default dist), because a bundle starts faster than hundreds of files.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { build } from 'esbuild'
import { tsImport } from 'tsx/esm/api'

const { renderGuide } = await tsImport('../docs/render-guide.ts', import.meta.url)

const folder = process.argv[2] ?? 'dist'
rmSync(folder, { recursive: true, force: true })
await build({
  entryPoints: { server: 'src/server.ts', 'cli/ops': 'src/operator/cli/ops.ts' },
  outdir: folder,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Without `navigator`, which Node.js 20 lacks, pg detects Cloudflare by a Response, which loads fetch and delays the
  // start.
  define: { navigator: JSON.stringify({ userAgent: 'Node.js' }) },
  external: [
    'pg-native',
    // The build renders the guides below, so the service does not need the renderer.
    './src/docs/render-guide.ts',
    // Fastify needs these packages only for JSON Schemas, which the service does not use (NO_JSON_SCHEMA), and for
    // `inject`. In the bundle they would delay the start.
    '@fastify/ajv-compiler',
    '@fastify/fast-json-stringify-compiler',
    'light-my-request',
  ],
  // CommonJS libraries call `require` for Node.js modules, and an ES module has no `require`.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'\nconst require = requireFrom(import.meta.url)",
  },
  logLevel: 'warning',
})
cpSync('src/platform/db/grants.sql', `${folder}/grants.sql`)
cpSync('src/operator/deploy/citus.sql', `${folder}/deploy/citus.sql`)
cpSync('src/gateway/checkout/page', `${folder}/page`, { recursive: true })
cpSync('src/docs/ui', `${folder}/ui`, { recursive: true })
cpSync('src/docs/guides', `${folder}/guides`, { recursive: true })
for (const file of readdirSync('src/docs/guides')) {
  const html = renderGuide(readFileSync(`src/docs/guides/${file}`, 'utf8'))
  writeFileSync(`${folder}/guides/${file.replace(/md$/, 'html')}`, html)
}
cpSync('node_modules/openapi-explorer/dist/browser/openapi-explorer.min.js', `${folder}/ui/openapi-explorer.min.js`)
cpSync('node_modules/openapi-explorer/LICENSE', `${folder}/ui/openapi-explorer.LICENSE`)
