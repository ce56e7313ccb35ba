import { expect, it } from 'vitest'
import { openApiDocument } from '../../src/docs/openapi.ts'
import { WEBHOOKS } from '../../src/gateway/webhooks/events.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { problemsOf } from './problems.ts'

it('the OpenAPI document passes a linter’s strictest rules', async () => {
  const operations = Object.values(OPERATIONS).flat()
  expect(
    await problemsOf(openApiDocument({ publicUrl: 'https://pay.example.in/upi', operations, webhooks: WEBHOOKS })),
  ).toEqual([])
})
