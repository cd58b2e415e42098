// The suite's server on a port of its own. It is told the number of a test's next request, which the cache does not hand on.
import http from 'node:http'
import { syncBuiltinESMExports } from 'node:module'

const numbers = new Map()
const createServer = http.createServer
http.createServer = handler => {
  const server = createServer((request, response) => {
    const [, kind, id, number] = request.url.split(/[/?]/)
    if (kind === 'announce') {
      numbers.set(id, number)
      return response.end('OK')
    }
    if (kind === 'test' && numbers.has(id)) request.headers['req-num'] = numbers.get(id)
    handler(request, response)
  })
  const listen = server.listen.bind(server)
  server.listen = () => listen(0, '127.0.0.1')
  return server
}
syncBuiltinESMExports()
Object.assign(process.env, { npm_config_protocol: 'http', npm_config_port: '0', npm_config_pidfile: '/dev/null' })
await import('./suite/test-engine/server/server.mjs')
