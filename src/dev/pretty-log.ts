// Imported before the service when its output is a terminal: one line for people for each request. Any other reader of
// the log gets JSON.
import { pino } from 'pino'
import pretty from 'pino-pretty'

const lines = pretty({
  // Synchronous, so that log lines and other output keep their order.
  sync: true,
  translateTime: 'SYS:HH:MM:ss',
  // The message shows these fields already.
  ignore: 'id,method,route,status,durationMs,publicKey,mid',
  messageFormat: (line, messageKey) => {
    const { method, route, status, durationMs, publicKey, id } = line
    if (line[messageKey] !== 'request') return `${line[messageKey]}${id === undefined ? '' : ` ${id}`}`
    const who = publicKey === undefined ? '' : ` ${publicKey}`
    return `${method} ${route} ${status} in ${durationMs} ms${who} ${id}`
  },
})

Object.assign(pino, { destination: () => Object.assign(lines, { flush: () => undefined }) })
