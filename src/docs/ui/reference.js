// OpenAPI Explorer shows and searches only summaries, so each summary gets the name of the operation. Examples of
// required fields become defaults, so that the first press of Execute returns 200. An order_id gets no default, because
// the second press would repeat the same order_id. A field without an example gets its name as the example, because
// screen readers read examples.
document.querySelector('openapi-explorer').addEventListener('spec-loaded', ({ detail }) => {
  for (const path of detail.tags.flatMap(({ paths }) => paths)) {
    path.summary = path.shortSummary = `${path.summary} · ${path.operationId}`
    const { properties = {}, required } = path.requestBody?.content['application/x-www-form-urlencoded']?.schema ?? {}
    for (const [name, property] of Object.entries(properties)) {
      if (required.includes(name)) property.default = property.example
      property.example ??= name
    }
  }
})
