// Runs the suite's cases against a cache and prints a line for each: pass or fail, its kind, its name, and what was wrong.
// The words behind the cache's address are the names of those to run; none means all.
import { getResults, runTests } from './suite/test-engine/client/runner.mjs'
import suites from './suite/tests/index.mjs'

// The cache does not hand on the number of a request, so it is told to the origin beforehand, past the cache.
const send = globalThis.fetch
globalThis.fetch = async (url, init) => {
  const number = init?.headers?.find?.(([name]) => name === 'Req-Num')?.[1]
  if (number !== undefined) {
    const { origin, pathname } = new URL(url)
    await (await send(`${origin}/announce/${pathname.split('/')[2]}/${number}`)).text()
  }
  return send(url, init)
}

const [address, ...names] = process.argv.slice(2)
const wanted = test => !test.browser_only && (names.length === 0 || names.includes(test.id))
const chosen = suites.map(suite => ({ ...suite, tests: suite.tests.filter(wanted) }))
await runTests(chosen, false, address)
const results = getResults()
for (const { id, kind = 'required' } of chosen.flatMap(suite => suite.tests)) {
  const result = results[id]
  const [word, why] = result === true ? ['pass', ''] : ['fail', String(result?.[1] ?? 'not run')]
  console.log([word, kind, id, why.replaceAll(/\s+/g, ' ')].join('\t'))
}
