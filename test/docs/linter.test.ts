import { createConfig, lintFromString } from '@redocly/openapi-core'
import { expect, it } from 'vitest'
import { openApiDocument } from '../../src/docs/openapi.ts'
import { OPERATIONS } from '../../src/operations.ts'

it.each([true, false])(
  'the OpenAPI document passes a linter’s strictest rules (notifications taken: %s)',
  async (takesNotifications) => {
    const { acquirer, ...others } = OPERATIONS
    const operations = Object.values({ ...others, acquirer: takesNotifications ? acquirer : [] }).flat()
    const document = openApiDocument({ publicUrl: 'https://pay.example.in/upi', operations })
    const config = await createConfig({ extends: ['recommended-strict'] })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([])
  },
)
