import { createConfig, lintFromString } from '@redocly/openapi-core'

/** What a linter's strictest rules find in an OpenAPI document. */
export async function problemsOf(document: object) {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  return problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])
}
