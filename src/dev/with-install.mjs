// node src/dev/with-install.mjs [FILE [args…]]
//
// Installs the dependencies if they are missing or older than package-lock.json, then runs FILE in this process.
// Imports only node: modules, because a fresh clone contains no other modules. npm scripts call this file explicitly
// instead of through `prestart`, because npm skips `prestart` scripts under `ignore-scripts`.
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const LOWEST_NODE = [20, 19]
const OUTPUT_LIMIT_BYTES = 64 * 1024 * 1024

const root = fileURLToPath(new URL('../..', import.meta.url))
const [file, ...args] = process.argv.slice(2)

checkNodeVersion()
if (!isInstalled()) install()
if (file !== undefined) await run(resolve(root, file))

function checkNodeVersion() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > LOWEST_NODE[0] || (major === LOWEST_NODE[0] && minor >= LOWEST_NODE[1])) return
  console.error(
    `Node.js ${LOWEST_NODE.join('.')} or newer is required; this is ${process.versions.node}. Install a newer version.`,
  )
  process.exit(1)
}

function isInstalled() {
  const installed = statSync(resolve(root, 'node_modules/.package-lock.json'), { throwIfNoEntry: false })
  return installed !== undefined && installed.mtimeMs >= statSync(resolve(root, 'package-lock.json')).mtimeMs
}

function install() {
  // Messages go to stderr, because stdout is reserved for the output of FILE.
  console.error('Installing dependencies (npm ci) …')
  // Installs development dependencies even with NODE_ENV=production, because a checkout needs tsx and PostgreSQL.
  const npmArgs = ['ci', '--include=dev']
  const npm = process.env.npm_execpath ?? ''
  const options = { cwd: root, encoding: 'utf8', maxBuffer: OUTPUT_LIMIT_BYTES }
  const { status, error, stdout, stderr } = npm.endsWith('npm-cli.js')
    ? spawnSync(process.execPath, [npm, ...npmArgs], options)
    : spawnSync('npm', npmArgs, { ...options, shell: process.platform === 'win32' })
  if (status === 0) return
  console.error(`${stdout ?? ''}${stderr ?? ''}`)
  console.error(`npm ci failed${error ? `: ${error.message}` : ''}.`)
  process.exit(1)
}

async function run(path) {
  process.argv = [process.argv[0], path, ...args]
  if (path.endsWith('.ts')) {
    const { register } = await import('tsx/esm/api')
    register()
  }
  await import(pathToFileURL(path).href)
}
