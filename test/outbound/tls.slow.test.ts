import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blockWith, chapterText } from '../guides/guides.ts'
import { has } from '../guides/interpreters.ts'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'upi-payments-tls-'))
const CERTIFICATE = join(folder, 'certificate.pem')
const KEY = join(folder, 'key.pem')

/** The server names that callers requested, one per received request. */
const requests: (string | false | null)[] = []
/** The TCP connections below TLS. */
const connections: Socket[] = []
let port = 0
let close = () => {}

const callAll = (environment: Record<string, string>, ...hosts: string[]) =>
  callUrls(
    environment,
    hosts.map((host) => `https://${host}:${port}/`),
  )

async function callUrls(environment: Record<string, string>, urls: string[]) {
  const env = { ...process.env, NODE_NO_WARNINGS: '1', ...environment }
  return JSON.parse((await run(process.execPath, [join(folder, 'call-process.mjs'), ...urls], { env })).stdout)
}

describe.skipIf(!has('openssl', { mustHave: true }))('https receivers', () => {
  beforeAll(async () => {
    // Bundled like the image, because a package in the bundle has other exports.
    await build({
      entryPoints: [join(import.meta.dirname, 'call-process.ts')],
      outdir: folder,
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      outExtension: { '.js': '.mjs' },
      banner: { js: "import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)" },
    })
    const names = 'subjectAltName=DNS:shop.example,IP:127.0.0.1'
    const subject = ['-subj', '/CN=shop.example', '-addext', names, '-days', '2']
    const keyArgs = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', KEY]
    await run('openssl', ['req', '-x509', ...keyArgs, '-out', CERTIFICATE, ...subject])
    const server = createServer({ cert: readFileSync(CERTIFICATE), key: readFileSync(KEY) }, (request, response) => {
      if (request.url === '/101') {
        request.socket.write('HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n')
        setTimeout(() => connections.at(-1)?.resetAndDestroy(), 100)
        return
      }
      requests.push((request.socket as TLSSocket & { servername: string | false | null }).servername)
      response.end('ok')
    })
    server.on('connection', (socket) => connections.push(socket as Socket))
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
    close = () => void server.close()
  })

  afterAll(() => {
    close()
    rmSync(folder, { recursive: true })
  })

  it('sends nothing to an https receiver with an untrusted certificate, whatever the environment allows', async () => {
    const rejected = {
      failure: 'connection failed',
      text: 'The connection failed or was interrupted (DEPTH_ZERO_SELF_SIGNED_CERT)',
    }
    expect(await callAll({}, 'shop.example', '127.0.0.1')).toEqual([rejected, rejected])
    expect(await callAll({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, 'shop.example')).toEqual([rejected])
    expect(requests).toEqual([])
  })

  it('calls an https receiver only if its certificate matches the host name', async () => {
    const trusting = { NODE_EXTRA_CA_CERTS: CERTIFICATE }
    expect(await callAll(trusting, 'shop.example', '127.0.0.1', 'other.example')).toEqual([
      { status: 200, text: 'ok' },
      { status: 200, text: 'ok' },
      { failure: 'connection failed', text: 'The connection failed or was interrupted (ERR_TLS_CERT_ALTNAME_INVALID)' },
    ])
    expect(requests.splice(0).sort()).toEqual([false, 'shop.example'])
  })

  it('rejects a certificate without its intermediate certificate, as the command in the merchant guide does', async () => {
    const file = (name: string) => join(folder, name)
    const openssl = (command: string) => run('openssl', command.split(' '), { cwd: folder })
    writeFileSync(file('ca.cnf'), 'basicConstraints=critical,CA:TRUE\n')
    writeFileSync(file('leaf.cnf'), 'subjectAltName=DNS:localhost\n')
    const key = (name: string) => `-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ${name}.key`
    await openssl(`req -x509 ${key('root')} -out root.pem -subj /CN=Root -days 2`)
    for (const [name, issuer, config] of [
      ['intermediate', 'root', 'ca'],
      ['leaf', 'intermediate', 'leaf'],
    ]) {
      await openssl(`req -new ${key(`${name}`)} -out ${name}.csr -subj /CN=${name}`)
      const by = `-CA ${issuer}.pem -CAkey ${issuer}.key -CAcreateserial -extfile ${config}.cnf`
      await openssl(`x509 -req -in ${name}.csr ${by} -out ${name}.pem -days 2`)
    }
    const leaf = readFileSync(file('leaf.pem'), 'utf8')
    const sample = blockWith('merchant', 'sh', 'openssl s_client').replace('HOOK=shop.example', 'HOOK=localhost')
    const check = async (cert: string) => {
      const server = createServer({ cert, key: readFileSync(file('leaf.key')) }, (_request, response) => {
        response.end('ok')
      })
      await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const trusted = { NODE_EXTRA_CA_CERTS: file('root.pem') }
      const results = await callUrls(trusted, [`https://localhost:${port}/`])
      const command = sample.replace(':443', `:${port}`)
      const { stderr } = await run('sh', ['-c', command], { env: { ...process.env, SSL_CERT_FILE: file('root.pem') } })
      server.close()
      return [results, /^Verification.*$/m.exec(stderr)?.[0]]
    }
    const guide = chapterText('merchant/webhooks')
    const [, failed] = /`(Verification error: .+?)` means/.exec(guide) ?? []
    const [, code] = /the error `(UNABLE_TO_\w+)`/.exec(guide) ?? []
    expect(await check(leaf)).toEqual([
      [{ failure: 'connection failed', text: `The connection failed or was interrupted (${code})` }],
      failed,
    ])
    const chain = leaf + readFileSync(file('intermediate.pem'), 'utf8')
    expect(await check(chain)).toEqual([[{ status: 200, text: 'ok' }], 'Verification: OK'])
  })

  it('calls an https receiver directly even if the environment names a proxy, because a proxy would resolve the host name itself', async () => {
    const unreachable = 'http://127.0.0.1:1'
    const proxies = {
      HTTPS_PROXY: unreachable,
      https_proxy: unreachable,
      ALL_PROXY: unreachable,
      NO_PROXY: '',
      no_proxy: '',
    }
    const environment = { NODE_EXTRA_CA_CERTS: CERTIFICATE, NODE_USE_ENV_PROXY: '1', ...proxies }
    expect(await callAll(environment, 'shop.example')).toEqual([{ status: 200, text: 'ok' }])
    expect(requests).toEqual(['shop.example'])
  })

  it('the service survives an https receiver that responds with 101 and resets the connection', async () => {
    expect(await callUrls({ NODE_EXTRA_CA_CERTS: CERTIFICATE }, [`https://shop.example:${port}/101`])).toEqual([
      { failure: 'connection failed', text: 'The connection failed or was interrupted (bad upgrade)' },
    ])
    expect(connections.at(-1)?.destroyed).toBe(true)
  })
})
