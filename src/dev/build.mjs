// `node src/dev/build.mjs [FOLDER]` bundles the service and the operator commands with their libraries into FOLDER
// (default: dist). `npm run build` calls this script. A bundle starts faster than hundreds of files.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { tsImport } from 'tsx/esm/api'

const { renderChapter } = await tsImport('../docs/render-chapter.ts', import.meta.url)
const { ASSETS, readAsset } = await tsImport('../docs/files.ts', import.meta.url)
const { GUIDES, chaptersOf } = await tsImport('../docs/chapters.ts', import.meta.url)

const folder = process.argv[2] ?? 'dist'
rmSync(folder, { recursive: true, force: true })
await build({
  entryPoints: { server: 'src/server.ts', 'cli/ops': 'src/operator/terminal/ops.ts' },
  outdir: folder,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // Defines `navigator`, which Node.js 20 lacks. Without it, pg detects Cloudflare by a Response, which loads fetch and
  // delays startup.
  define: {
    navigator: JSON.stringify({ userAgent: 'Node.js' }),
    BUILD_COMMIT: JSON.stringify(commitOfBuild()),
  },
  external: [
    'pg-native',
    // The build renders the chapters below, so the built service does not need the renderer.
    './src/docs/render-chapter.ts',
    // Fastify needs these packages only for JSON Schemas, which the service does not use (NO_JSON_SCHEMA), and for
    // `inject`. In the bundle, these packages would delay startup.
    '@fastify/ajv-compiler',
    '@fastify/fast-json-stringify-compiler',
    'light-my-request',
  ],
  // CommonJS libraries call `require` for Node.js modules, but an ES module has no `require`.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'\nconst require = requireFrom(import.meta.url)",
  },
  logLevel: 'warning',
})
for (const file of ['grants.sql', 'console-grants.sql']) cpSync(`src/platform/db/${file}`, `${folder}/${file}`)
cpSync('src/operator/deploy/citus.sql', `${folder}/deploy/citus.sql`)
cpSync('src/operator/console/console.css', `${folder}/console.css`)
cpSync('src/gateway/checkout/page', `${folder}/page`, { recursive: true })
cpSync('src/docs/guides', `${folder}/guides`, { recursive: true })
for (const chapter of Object.keys(GUIDES).flatMap(chaptersOf)) {
  const rendered = renderChapter(readFileSync(`src/docs/guides/${chapter}.md`, 'utf8'))
  writeFileSync(`${folder}/guides/${chapter}.json`, JSON.stringify(rendered))
}
mkdirSync(`${folder}/ui`)
for (const name of ASSETS) writeFileSync(`${folder}/ui/${name}`, await readAsset(name))
await build({
  entryPoints: { minisearch: 'minisearch' },
  outdir: `${folder}/ui`,
  bundle: true,
  minify: true,
  format: 'esm',
  logLevel: 'warning',
})
// The service sends these files as they are. Quality 11 takes seconds, which only a build has.
for (const name of ASSETS) {
  const body = readFileSync(`${folder}/ui/${name}`)
  writeFileSync(`${folder}/ui/${name}.br`, brotliCompressSync(body))
  writeFileSync(`${folder}/ui/${name}.gz`, gzipSync(body, { level: 9 }))
}
// The bundles hide their packages from scanners, which look for node_modules.
writeFileSync(`${folder}/sbom.cdx.json`, JSON.stringify(billOfMaterials(), null, 2))
cpSync('node_modules/openapi-explorer/LICENSE', `${folder}/ui/openapi-explorer.LICENSE`)
cpSync('node_modules/minisearch/LICENSE.txt', `${folder}/ui/minisearch.LICENSE`)

// The build of a Docker image has no repository, so it passes the commit in COMMIT.
function commitOfBuild() {
  const git = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' })
  return process.env.COMMIT || git.stdout?.trim() || 'unknown'
}

// The packages in CycloneDX, with the hashes of package-lock.json. npm reads a lock file without the packages for development,
// because `npm sbom --omit dev` also omits packages that both the service and a development tool need. npm contacts no registry.
function billOfMaterials() {
  const { devDependencies: _, ...manifest } = JSON.parse(readFileSync('package.json', 'utf8'))
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  const packages = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && !dev)
  const cwd = mkdtempSync(join(tmpdir(), 'upi-payments-sbom-'))
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest))
  const runtimeLock = { ...lock, packages: Object.fromEntries([['', manifest], ...packages]) }
  writeFileSync(join(cwd, 'package-lock.json'), JSON.stringify(runtimeLock))
  const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only', '--offline']
  const { status, stdout, stderr, error } = spawnSync('npm', args, { cwd, encoding: 'utf8' })
  rmSync(cwd, { recursive: true })
  if (status !== 0) throw new Error(`npm sbom failed: ${error?.message ?? stderr}`)
  const bill = JSON.parse(stdout)
  // npm uses the name of the folder.
  bill.metadata.component.name = manifest.name
  return bill
}
