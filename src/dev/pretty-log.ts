// Formats the log for people, with one line per request. The start script imports this module before the service if
// stdout is a terminal. Otherwise the log is JSON.
import { pino } from 'pino'
import pretty from 'pino-pretty'

const lines = pretty({
  // Synchronous writes keep log lines and other output in the right order.
  sync: true,
  translateTime: 'SYS:HH:MM:ss',
  // `messageFormat` already prints these fields.
  ignore: 'id,method,route,status,durationMs,publicKey,mid',
  messageFormat: (line, messageKey) => {
    const { method, route, status, durationMs, publicKey, id } = line
    if (line[messageKey] !== 'Request completed') return `${line[messageKey]}${id === undefined ? '' : ` ${id}`}`
    const who = publicKey === undefined ? '' : ` ${publicKey}`
    return `${method} ${route} ${status} in ${durationMs} ms${who} ${id}`
  },
})

Object.assign(pino, { destination: () => Object.assign(lines, { flush: () => undefined }) })
