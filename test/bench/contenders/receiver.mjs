// node receiver.mjs: takes every webhook at once, as fast as Node.js can.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.end('ok'))
})
server.listen(Number(process.env.PORT), '127.0.0.1')
