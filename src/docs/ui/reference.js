// OpenAPI Explorer shows and searches summaries only, so the name of the operation is added to its summary. Examples
// become the defaults of a form, so that the first press of Execute is answered 200. order_id gets none: a second press
// would be a repeat. Its own name becomes its example, since an input without one has no name for a screen reader.
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
