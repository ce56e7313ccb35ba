import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { residentMB } from '../../support/processes.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'
import { type Contender, floor, launch, ours, type Service } from '../contenders.ts'
import type { Finding } from '../report.ts'
import { alternate, ratios } from '../statistics.ts'

const ROUNDS = 25
const POLL_MS = 1
const IDLE_MS = 2_000
const READY_LIMIT = 1.4
const IDLE_LIMIT_MB = 120

/** How soon the service is ready, and what it holds while nobody asks. */
export const start: Section = async (bench) => {
  const database = await bench.createDatabase('start')
  return async () => {
    const contenders = { floor: floor('{}'), ours: ours(database.url) }
    // Reads every file once, so that none of the starts that count waits for the disk.
    for (const contender of Object.values(contenders)) await timeStart(contender)
    const series = await alternate(['floor', 'ours'], ROUNDS, (name) => timeStart(contenders[name]))
    progress(`start: ${ROUNDS} rounds done`)
    const service = await launch(contenders.ours)
    await untilAnswered(service, '/readyz')
    await sleep(IDLE_MS)
    const idleMB = residentMB(service.pid)
    await service.stop()
    return [finding(series, idleMB)]
  }
}

type Start = { listeningMs: number; readyMs: number }

function finding(series: Record<'floor' | 'ours', Start[]>, idleMB: number): Finding {
  const samples = (name: 'floor' | 'ours', figure: keyof Start) => series[name].map((result) => result[figure])
  const bare = samples('floor', 'listeningMs')
  const ready = samples('ours', 'readyMs')
  return {
    title: 'Start against a migrated database',
    series: [
      { contender: 'bare Fastify, listening', unit: 'ms', samples: bare },
      { contender: 'ours, listening', unit: 'ms', samples: samples('ours', 'listeningMs') },
      { contender: 'ours, /readyz answers 200', unit: 'ms', samples: ready },
    ],
    figures: [
      {
        what: 'ours ready / bare Fastify listening',
        samples: ratios(ready, bare),
        unit: '×',
        atMost: READY_LIMIT,
      },
      { what: 'idle memory of ours', samples: [idleMB], unit: 'MB', atMost: IDLE_LIMIT_MB },
    ],
  }
}

async function timeStart(contender: Contender): Promise<Start> {
  const startedAt = performance.now()
  const service = await launch(contender)
  await untilSoon(service, 'it listened', () => isListening(service.port))
  const listeningMs = performance.now() - startedAt
  await untilAnswered(service, contender.readyPath)
  const readyMs = performance.now() - startedAt
  await service.stop()
  return { listeningMs, readyMs }
}

const untilAnswered = (service: Service, path: string) =>
  untilSoon(service, `${path} was answered`, () => isAnswered(service.port, path))

function untilSoon({ hasEnded }: Service, what: string, isSo: () => Promise<boolean>): Promise<void> {
  const isReady = async () => {
    if (await isSo()) return true
    if (hasEnded()) throw new Error('A program ended before it was ready')
    return false
  }
  return until(what, isReady, { pollMs: POLL_MS })
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.destroy())
    socket.on('error', () => undefined)
    socket.on('close', (failed) => resolve(!failed))
  })
}

/** By a bare socket, because an HTTP client would take more time than the answer itself. */
function isAnswered(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1')
    // Not end: Node.js gives up a request whose client has closed its side.
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(answer.startsWith('HTTP/1.1 200')))
  })
}
