// OpenAPI Explorer shows and searches an operation's summary: its name is put beside it here. Other programs show both.
// OpenAPI Explorer fills in the defaults of a form's fields. They have none: their examples stand in, so that the first press of
// Execute is answered 200. Nothing is filled into order_id, since the second press would be a repeat; its name takes the place of
// an example, as an input without one has no name for a screen reader.
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
